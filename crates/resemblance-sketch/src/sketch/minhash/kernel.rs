//! The instructions that compute the minima. All give the same values.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
use super::batch::FeatureBatch;
use super::families::FunctionFamily;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon;
use super::rows::LANES;

/// The instructions to use. A kernel exists only if the processor has its instructions.
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

impl Kernel {
    /// The fastest kernel that this processor can run.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx512) = Avx512::detect() {
                return Self(Instructions::Avx512(avx512));
            }
            if let Some(avx2) = Avx2::detect() {
                return Self(Instructions::Avx2(avx2));
            }
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        return Self(Instructions::Neon);
        #[cfg(not(all(target_arch = "aarch64", target_feature = "neon")))]
        Self(Instructions::Portable)
    }

    /// All kernels that this processor can run, each with its name; the portable one first.
    #[allow(
        dead_code,
        unused_mut,
        reason = "for tests and measurements, where there is more than one"
    )]
    pub(crate) fn available() -> Vec<(&'static str, Self)> {
        let mut kernels = vec![("portable", Self(Instructions::Portable))];
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx2) = Avx2::detect() {
                kernels.push(("avx2", Self(Instructions::Avx2(avx2))));
            }
            if let Some(avx512) = Avx512::detect() {
                kernels.push(("avx512", Self(Instructions::Avx512(avx512))));
            }
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        kernels.push(("neon", Self(Instructions::Neon)));
        kernels
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
