//! The minima of k hash functions, and the kernels that compute them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
mod families;
mod kernel;
mod min_hasher;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
pub(crate) mod neon;
mod pair_multiply;
mod permutations;
mod tabulation;

#[cfg(test)]
pub(crate) use kernel::Kernel;
pub(crate) use min_hasher::{MinHasher, Minima};
pub use permutations::Permutations;
