//! Arranges the functions in rows of lanes, as kernels evaluate them.

/// The number of functions that are evaluated together: one 512-bit vector register, or several
/// smaller ones. Frozen, because functions of the default family share a multiplier if their
/// numbers differ by a multiple of it.
pub(super) const LANES: usize = 16;

/// Builds `rows` rows: lane i of row j is `function(16 j + i)`.
pub(super) fn build_rows<T>(rows: usize, function: impl Fn(u64) -> T) -> Vec<[T; LANES]> {
    let row = |row: usize| std::array::from_fn(|lane| function((row * LANES + lane) as u64));
    (0..rows).map(row).collect()
}

/// The part c y + b of the functions of one row, which is added to the part of each column.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowTerm {
    pub(super) multiplier: u32,
    pub(super) addend: u32,
}

impl RowTerm {
    #[inline(always)]
    pub(super) fn sum(self, high: u32) -> u32 {
        high.wrapping_mul(self.multiplier).wrapping_add(self.addend)
    }
}

/// The functions of the default family that a kernel still has to evaluate, and their minima.
#[allow(
    dead_code,
    reason = "only kernels of vector instructions evaluate them in blocks"
)]
pub(super) struct RestOfRows<'a> {
    pub(super) rows: &'a [RowTerm],
    pub(super) minima: &'a mut [[u32; LANES]],
}

/// Defines `update_features`, compiled for `$features`. The function mixes the hashes of a batch
/// with a key and lowers the minima to the values of its features. It evaluates blocks of `$rows`
/// rows, the largest blocks first.
///
/// The calling module provides `load` and `store`, which move a row between memory and a `$row` of
/// registers; `multiply`, which returns the products of the columns and a number; and `lower`,
/// which lowers minima to the products plus a sum.
#[allow(
    unused_macros,
    reason = "only kernels of vector instructions are defined by it"
)]
macro_rules! vector_kernel {
    ($features:literal, $row:ty, $($rows:literal),+) => {
        #[target_feature(enable = $features)]
        fn update_features(
            family: &FunctionFamily,
            key: u64,
            minima: &mut [[u32; LANES]],
            batch: &mut FeatureBatch,
        ) {
            batch.mix(key);
            match family {
                FunctionFamily::PairMultiply(functions) => {
                    let columns = load(&functions.columns);
                    let rows = functions.rows.as_slice();
                    let mut rest = RestOfRows { rows, minima };
                    $(blocks::<$rows>(columns, &mut rest, batch);)+
                }
                other => other.update(minima, batch.features()),
            }
        }

        /// Updates the minima of all whole blocks of `ROWS` rows, and leaves the remaining rows.
        #[inline]
        #[target_feature(enable = $features)]
        fn blocks<const ROWS: usize>(
            columns: $row,
            rest: &mut RestOfRows<'_>,
            batch: &mut FeatureBatch,
        ) {
            let (rows, other_rows) = rest.rows.as_chunks::<ROWS>();
            let (minima, other_minima) =
                std::mem::take(&mut rest.minima).as_chunks_mut::<ROWS>();
            for (rows, minima) in rows.iter().zip(minima) {
                block(columns, rows, minima, batch);
            }
            (rest.rows, rest.minima) = (other_rows, other_minima);
        }

        /// Updates the minima of `ROWS` rows. They stay in registers from the first feature to the
        /// last.
        #[inline]
        #[target_feature(enable = $features)]
        fn block<const ROWS: usize>(
            columns: $row,
            rows: &[RowTerm; ROWS],
            minima: &mut [[u32; LANES]; ROWS],
            batch: &mut FeatureBatch,
        ) {
            batch.add_up(rows);
            let mut least = minima.each_ref().map(|lanes| load(lanes));
            for (position, mixed) in batch.numbered_features() {
                let products = multiply(columns, mixed as u32);
                for (least, sums) in least.iter_mut().zip(batch.sums()) {
                    *least = lower(*least, products, sum_at(sums, position));
                }
            }
            for (minima, least) in minima.iter_mut().zip(least) {
                store(minima, least);
            }
        }
    };
}
#[allow(
    unused_imports,
    reason = "only kernels of vector instructions are defined by it"
)]
pub(super) use vector_kernel;

/// Defines a kernel that calls the `update_features` of its module, which is compiled for the features given.
#[cfg(target_arch = "x86_64")]
macro_rules! detected_kernel {
    ($kernel:ident, $($feature:tt),+) => {
        /// A proof that the processor has the instructions: only `detect` creates it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct $kernel(());

        impl $kernel {
            pub(super) fn detect() -> Option<Self> {
                let is_found = $(is_x86_feature_detected!($feature))&&+;
                is_found.then_some(Self(()))
            }

            pub(super) fn update(
                self,
                family: &FunctionFamily,
                key: u64,
                minima: &mut [[u32; LANES]],
                batch: &mut FeatureBatch,
            ) {
                // SAFETY: `self` exists only if `detect` found that the processor has the instructions that
                // `update_features` is compiled for.
                unsafe { update_features(family, key, minima, batch) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use detected_kernel;

/// Returns the high 32 bits of a number.
pub(super) fn high(number: u64) -> u32 {
    (number >> 32) as u32
}
