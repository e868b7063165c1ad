//! The minima of k hash functions, and the kernels that compute them.
//!
//! `sketch` imports [`MinHasher`] and its [`Minima`], [`Permutations`], and the kernels for tests.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, reason = "only kernels of vector instructions add up")
)]
mod batch;
mod families;
mod kernel;
mod min_hasher;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod pair_multiply;
mod permutations;
mod rows;
mod tabulation;

#[allow(
    unused_imports,
    reason = "tests and the benchmark of kernels choose one"
)]
pub(super) use kernel::Kernel;
pub use kernel::vector_instructions;
pub(super) use min_hasher::{MinHasher, Minima};
pub use permutations::Permutations;
