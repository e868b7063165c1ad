//! Selects the instructions that compute the minima. All kernels return the same values.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::batch::FeatureBatch;
use super::families::FunctionFamily;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon;
use super::rows::LANES;

/// A kernel. It exists only if the processor has its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel(Instructions);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
}

/// Returns the name of the vector instructions by which MinHash values are computed on this processor: `avx512`, `avx2`,
/// `neon`, or `portable` without any. Values are the same with all of them.
///
/// ```
/// println!("MinHash by {}", resemblance_sketch::sketch::vector_instructions());
/// # assert!(!resemblance_sketch::sketch::vector_instructions().is_empty());
/// ```
#[must_use]
pub fn vector_instructions() -> &'static str {
    Kernel::available()
        .last()
        .map_or("portable", |(name, _)| name)
}

impl Kernel {
    /// Returns the fastest kernel that this processor can run.
    pub(super) fn detect() -> Self {
        let portable = Self(Instructions::Portable);
        Self::available()
            .last()
            .map_or(portable, |(_, kernel)| kernel)
    }

    /// Returns all kernels that this processor can run, each with its name: the portable one first,
    /// the fastest last.
    pub(crate) fn available() -> impl Iterator<Item = (&'static str, Self)> {
        let kernels = [
            Some(("portable", Instructions::Portable)),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(|avx2| ("avx2", Instructions::Avx2(avx2))),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(|avx512| ("avx512", Instructions::Avx512(avx512))),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Some(("neon", Instructions::Neon)),
        ];
        let found = kernels.into_iter().flatten();
        found.map(|(name, instructions)| (name, Self(instructions)))
    }

    /// Mixes the hashes of a batch with `key`, and lowers the minima to the values of its features.
    pub(super) fn update(
        self,
        family: &FunctionFamily,
        key: u64,
        minima: &mut [[u32; LANES]],
        batch: &mut FeatureBatch,
    ) {
        match self.0 {
            Instructions::Portable => {
                batch.mix(key);
                family.update(minima, batch.features());
            }
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(avx2) => avx2.update(family, key, minima, batch),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512(avx512) => avx512.update(family, key, minima, batch),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Instructions::Neon => neon::update(family, key, minima, batch),
        }
    }
}
