# The tool, alone in an image, for a user without rights:
#   docker build -t resemblance . && docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" resemblance dedup news.jsonl -o unique.jsonl
FROM rust:1.95-alpine AS build
# zstd, xz, SQLite and ring are built from C.
RUN apk add --no-cache build-base
COPY . /source
WORKDIR /source
# The compiler of the image, and not another one that rust-toolchain.toml would have downloaded.
RUN rm rust-toolchain.toml \
    && cargo build --release --locked -p resemblance-cli --features html,remote,sqlite,tables,warc \
    && mkdir -p /root-of-image/tmp /root-of-image/data \
    && chmod 1777 /root-of-image/tmp \
    && cp target/release/resemblance LICENSE-MIT LICENSE-APACHE /root-of-image/

FROM scratch
COPY --from=build /root-of-image /
USER 65534:65534
WORKDIR /data
ENTRYPOINT ["/resemblance"]
