# Recipes for https://just.systems; `just` without arguments lists them.
# Each is a command or two, which CONTRIBUTING.md gives for those who have no `just`.

_list:
    @'{{ just_executable() }}' --list --unsorted

# The tool, at target/release/resemblance
build:
    cargo build --release --locked -p resemblance-cli

# All tests of the library and the tool; ARGS as for `cargo test`
test *ARGS:
    cargo test {{ ARGS }}

# Formatting and lints, as .ci/run asks for them
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# Sketch, probe, commit and join in a minute or two; ARGS as for `cargo bench`
bench *ARGS:
    cargo bench {{ ARGS }}

# One fuzz target of `cargo +nightly fuzz list`; needs a nightly compiler and cargo-fuzz
fuzz TARGET SECONDS='60':
    mkdir -p fuzz/target/grown/{{ TARGET }}
    cd fuzz && cargo +nightly fuzz run {{ TARGET }} target/grown/{{ TARGET }} corpus/{{ TARGET }} -- -max_len=4096 -max_total_time={{ SECONDS }}

# The documentation, at target/doc/resemblance
docs:
    RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --all-features

# All documents as one site, at target/site; needs mdbook
site:
    .ci/docs

# Licences, sources and advisories of the dependencies; needs cargo-deny
deny:
    cargo deny --workspace check
    cargo deny --manifest-path python/Cargo.toml --config deny.toml check

# Every layout, crash and damage test with another release of redb, and a feature of it
redb RELEASE FEATURE='':
    .ci/redb {{ RELEASE }} {{ FEATURE }}

# Golden stores, format, searches and damage on other processors, under qemu
platforms *TARGETS:
    .ci/platforms {{ TARGETS }}

# A step of a release: check, readme, packages, archive TARGET, sbom, checksums, publish
release *STEP:
    .ci/release {{ STEP }}

# What CI runs on Linux
ci:
    .ci/run
