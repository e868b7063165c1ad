# The tool, alone in an image, for a user without rights: the binary of `.ci/release archive`, without Parquet and Arrow,
# which take 9 of its 33 MB.
#   docker build -t resemblance . && docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" resemblance dedup news.jsonl -o unique.jsonl
FROM rust:1.95-slim-bookworm AS build
# zstd, xz, SQLite and ring are built from C, by zig.
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && python3 -m venv /zig \
    && /zig/bin/pip install ziglang cargo-zigbuild
COPY . /source
WORKDIR /source
# The compiler of the image, and not another one that rust-toolchain.toml would have downloaded.
RUN rm rust-toolchain.toml \
    && target=$(uname -m)-unknown-linux-musl \
    && rustup target add "$target" \
    && PATH="/zig/bin:$PATH" FEATURES=html,remote,sqlite,warc .ci/release archive "$target" \
    && mkdir -p /root-of-image/tmp /root-of-image/data \
    && chmod 1777 /root-of-image/tmp \
    && cd dist/*-musl \
    && cp resemblance LICENSE-MIT LICENSE-APACHE THIRD-PARTY /root-of-image/

FROM scratch
COPY --from=build /root-of-image /
USER 65534:65534
WORKDIR /data
ENTRYPOINT ["/resemblance"]
