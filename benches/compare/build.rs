//! Names the libraries that the system's static RocksDB needs, which its crate does not.

use std::env::var_os;

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_STATIC");
    if var_os("CARGO_CFG_ROCKSDB").is_some() && var_os("ROCKSDB_STATIC").is_some() {
        for library in ["snappy", "gflags", "z", "bz2", "lz4", "zstd"] {
            println!("cargo::rustc-link-lib={library}");
        }
    }
}
