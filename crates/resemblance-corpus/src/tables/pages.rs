//! Checks the pages of Parquet before a decoder allocates what they declare.

use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::table_input::{ParquetInput, next_number};

/// The bytes that the decoder of texts allocates for each value of a delta page: two lengths.
const DELTA_VALUE_BYTES: u64 = 8;

/// Returns true for encodings in which a page itself declares its number of values.
pub(super) fn has_own_count(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
    )
}

/// Returns the maximum decoded size of one value of a column chunk, if few bytes of a page can
/// represent many values. These are the largest value of its dictionary, and the values of a page
/// that share a prefix.
///
/// # Errors
///
/// An error if a page declares more values than its header, or more than memory allows.
pub(super) fn largest_repeated(
    input: &Arc<ParquetInput>,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Result<u64> {
    if !matches!(
        chunk.column_type(),
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY
    ) {
        return Ok(0);
    }
    let has_counts = chunk.encodings().any(has_own_count);
    if chunk.dictionary_page_offset().is_none() && !has_counts {
        return Ok(0);
    }
    let rows = usize::try_from(rows).map_err(|_| damaged("more rows than memory can hold"))?;
    let mut pages = SerializedPageReader::new(Arc::clone(input), chunk, rows, None)?;
    let mut largest = 0;
    // Without delta pages only the dictionary matters, which is first.
    while let Some(page) = pages.get_next_page()? {
        let bytes = match &page {
            Page::DictionaryPage { buf, .. } => largest_of_dictionary(chunk, buf),
            page if has_own_count(page.encoding()) => {
                check_counts(page, chunk, input.memory_bytes)?;
                match page.encoding() {
                    Encoding::DELTA_BYTE_ARRAY => page.buffer().len() as u64,
                    _ => 0,
                }
            }
            _ => 0,
        };
        largest = largest.max(bytes);
        if !has_counts {
            break;
        }
    }
    Ok(largest)
}

fn damaged(message: &str) -> ParquetError {
    ParquetError::General(message.into())
}

/// Returns the length of the longest value of a dictionary. The decoder reports faults.
fn largest_of_dictionary(chunk: &ColumnChunkMetaData, mut values: &[u8]) -> u64 {
    if chunk.column_type() == Type::FIXED_LEN_BYTE_ARRAY {
        return 0;
    }
    let mut largest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        let Some(after) = rest.get(length as usize..) else {
            break;
        };
        largest = largest.max(length.into());
        values = after;
    }
    largest
}

/// Returns an error if a delta page declares more values than its header, or more than memory
/// allows.
fn check_counts(page: &Page, chunk: &ColumnChunkMetaData, memory_bytes: u64) -> Result<()> {
    let max_values = u64::from(page.num_values()).min(memory_bytes / DELTA_VALUE_BYTES);
    let too_short = || damaged("a page of deltas ends in its heads");
    let start = values_start(page, chunk).ok_or_else(too_short)?;
    let mut rest = page.buffer().get(start..).ok_or_else(too_short)?;
    let lists = match page.encoding() {
        // The lengths of the shared prefixes, and those of the suffixes.
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => 1,
    };
    for _ in 0..lists {
        let deltas = DeltaHead::parse(&mut rest).ok_or_else(too_short)?;
        if deltas.values > max_values {
            return Err(ParquetError::General(format!(
                "a page of deltas declares {} values, expected up to {max_values}",
                deltas.values
            )));
        }
        deltas.skip(&mut rest).ok_or_else(too_short)?;
    }
    Ok(())
}

/// Returns where the values of a page begin, after the levels.
fn values_start(page: &Page, chunk: &ColumnChunkMetaData) -> Option<usize> {
    let column = chunk.column_descr();
    let levels = [column.max_rep_level(), column.max_def_level()];
    match page {
        Page::DataPage {
            buf,
            num_values,
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let encodings = [*rep_level_encoding, *def_level_encoding];
            let mut start = 0_usize;
            for (max_level, encoding) in levels.into_iter().zip(encodings) {
                if max_level == 0 {
                    continue;
                }
                let length = if encoding == Encoding::RLE {
                    let bytes = buf.get(start..)?.first_chunk()?;
                    4 + usize::try_from(u32::from_le_bytes(*bytes)).ok()?
                } else {
                    let bits = u64::from(i16::BITS - max_level.leading_zeros());
                    usize::try_from((u64::from(*num_values) * bits).div_ceil(8)).ok()?
                };
                start = start.checked_add(length)?;
            }
            Some(start)
        }
        Page::DataPageV2 {
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            usize::try_from(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len)).ok()
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// The header of a list of integer deltas.
struct DeltaHead {
    mini_blocks: usize,
    mini_block_values: u64,
    values: u64,
}

impl DeltaHead {
    fn parse(rest: &mut &[u8]) -> Option<Self> {
        let block_values = next_number(rest)?;
        let mini_blocks = next_number(rest)?;
        let values = next_number(rest)?;
        // The first value.
        next_number(rest)?;
        let mini_block_values = block_values.checked_div(mini_blocks)?;
        let is_whole = mini_block_values > 0 && mini_block_values.is_multiple_of(32);
        is_whole.then_some(Self {
            mini_blocks: usize::try_from(mini_blocks).ok()?,
            mini_block_values,
            values,
        })
    }

    /// Skips the blocks, as the decoder does.
    fn skip(&self, rest: &mut &[u8]) -> Option<()> {
        let mut remaining = self.values.saturating_sub(1);
        while remaining > 0 {
            // The smallest delta.
            next_number(rest)?;
            let (widths, after) = rest.split_at_checked(self.mini_blocks)?;
            let mut bytes = 0_u64;
            for width in widths {
                if remaining > 0 {
                    bytes = bytes
                        .checked_add(u64::from(*width).checked_mul(self.mini_block_values)? / 8)?;
                }
                remaining = remaining.saturating_sub(self.mini_block_values);
            }
            *rest = after.get(usize::try_from(bytes).ok()?..)?;
        }
        Some(())
    }
}
