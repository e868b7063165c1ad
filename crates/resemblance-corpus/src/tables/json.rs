//! Converts values of columns to JSON.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, downcast_integer};
use arrow_schema::{ArrowError, DataType, Fields, TimeUnit};
use jiff::Timestamp;

use crate::bad_document::BadDocument;
use crate::json_line::{push, push_digits, push_name};
use crate::line;

type ArrowResult<T> = Result<T, ArrowError>;

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

/// Returns true if values of this type can be converted.
pub(super) fn is_written(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            is_written(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| is_written(field.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => match &fields[..] {
                [key, value] => is_text(key.data_type()) && is_written(value.data_type()),
                _ => false,
            },
            _ => false,
        },
        DataType::Dictionary(_, values) => is_written(values),
        DataType::Decimal32(..) | DataType::Decimal64(..) => false,
        other => {
            is_text(other)
                || other.is_numeric()
                || matches!(
                    other,
                    DataType::Null
                        | DataType::Boolean
                        | DataType::Binary
                        | DataType::LargeBinary
                        | DataType::BinaryView
                        | DataType::FixedSizeBinary(_)
                        | DataType::Timestamp(..)
                        | DataType::Date32
                        | DataType::Date64
                )
        }
    }
}

/// Returns true if values of this type are strings.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string(),
    }
}

/// Returns the number of bytes that the texts of a dictionary column take if each row gets a copy.
/// Returns 0 for other columns.
fn expanded_bytes(column: &ArrayRef) -> u64 {
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        return 0;
    };
    let values = dictionary.values();
    let length = |index: usize| match values.data_type() {
        DataType::Utf8 => u64::from(values.as_string::<i32>().value_length(index).unsigned_abs()),
        DataType::LargeUtf8 => values.as_string::<i64>().value_length(index).unsigned_abs(),
        _ => 0,
    };
    match values.is_empty() {
        true => 0,
        false => dictionary.normalized_keys().into_iter().map(length).sum(),
    }
}

/// Returns lines of JSON for the first rows, until they have `max_bytes`, and the number of these
/// rows. A null becomes a missing field.
pub(super) fn lines(batch: &RecordBatch, max_bytes: u64) -> ArrowResult<(Vec<u8>, usize)> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match expanded_bytes(column) > max_bytes {
            // The values are looked up row by row.
            true => Ok(Arc::clone(column)),
            false => column_values(column),
        })
        .collect::<ArrowResult<Vec<_>>>()?;
    let schema = batch.schema();
    let mut json = Vec::new();
    let mut rows = 0;
    while rows < batch.num_rows() && (json.len() as u64) < max_bytes {
        push_object(&mut json, schema.fields(), &columns, rows)?;
        json.push(b'\n');
        rows += 1;
    }
    Ok((json, rows))
}

/// Returns the keys in a column of ids, by the same rule as for rows of files. `None` is a null.
///
/// # Errors
///
/// The number of the first row without a valid key, from 0, and a description of the fault.
pub fn column_keys(
    name: &str,
    column: &ArrayRef,
) -> Result<Vec<Option<Vec<u8>>>, (usize, BadDocument)> {
    if !is_written(column.data_type()) {
        let reason = format!(
            "column {name:?} is {}, which is not supported",
            column.data_type()
        );
        let bad = BadDocument::new(reason).with_advice("cast it to strings or numbers");
        return Err((0, bad));
    }
    let values = column_values(column).map_err(|e| (0, BadDocument::new(e.to_string())))?;
    let mut keys = Vec::with_capacity(values.len());
    let mut json = Vec::new();
    for row in 0..values.len() {
        json.clear();
        let key = push_value(&mut json, &values, row)
            .map_err(|e| BadDocument::new(e.to_string()))
            .and_then(|()| key_of_json(name, &json));
        keys.push(key.map_err(|bad| (row, bad))?);
    }
    Ok(keys)
}

fn key_of_json(name: &str, json: &[u8]) -> Result<Option<Vec<u8>>, BadDocument> {
    let value = serde_json::from_slice(json).map_err(|e| BadDocument::new(e.to_string()))?;
    Ok(line::key_of(name, value)?.map(Cow::into_owned))
}

/// Replaces the numbers of a dictionary column by its values.
///
/// # Errors
///
/// An error if a number has no value.
pub fn column_values(column: &ArrayRef) -> ArrowResult<ArrayRef> {
    match column.as_any_dictionary_opt() {
        Some(numbered) => arrow_select::take::take(numbered.values(), numbered.keys(), None),
        None => Ok(column.clone()),
    }
}

fn push_object(
    json: &mut Vec<u8>,
    fields: &Fields,
    columns: &[ArrayRef],
    row: usize,
) -> ArrowResult<()> {
    json.push(b'{');
    for (field, column) in fields.iter().zip(columns) {
        if !column.is_null(row) {
            push_name(json, field.name());
            push_value(json, column, row)?;
        }
    }
    json.push(b'}');
    Ok(())
}

fn push_value(json: &mut Vec<u8>, column: &dyn Array, row: usize) -> ArrowResult<()> {
    macro_rules! push_integer {
        ($integer:ty) => {
            push(json, &number::<$integer>(column, row))
        };
    }
    if column.is_null(row) {
        json.extend_from_slice(b"null");
        return Ok(());
    }
    downcast_integer! {
        column.data_type() => (push_integer),
        DataType::Null => json.extend_from_slice(b"null"),
        DataType::Utf8 => push(json, column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => push(json, column.as_string::<i64>().value(row)),
        DataType::Utf8View => push(json, column.as_string_view().value(row)),
        DataType::Binary => push_digits(json, column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => push_digits(json, column.as_binary::<i64>().value(row)),
        DataType::BinaryView => push_digits(json, column.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => push_digits(json, column.as_fixed_size_binary().value(row)),
        DataType::List(_) => push_list(json, &column.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => push_list(json, &column.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => push_list(json, &column.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => push_object(json, fields, column.as_struct().columns(), row)?,
        DataType::Map(..) => push_map(json, &column.as_map().value(row))?,
        DataType::Dictionary(..) => push_value(json, &column_values(&column.slice(row, 1))?, 0)?,
        DataType::Boolean => push(json, &column.as_boolean().value(row)),
        DataType::Float16 => push(json, &number::<Float16Type>(column, row).to_f64()),
        DataType::Float32 => push(json, &number::<Float32Type>(column, row)),
        DataType::Float64 => push(json, &number::<Float64Type>(column, row)),
        DataType::Decimal128(..) => {
            json.extend(column.as_primitive::<Decimal128Type>().value_as_string(row).bytes());
        }
        DataType::Decimal256(..) => {
            json.extend(column.as_primitive::<Decimal256Type>().value_as_string(row).bytes());
        }
        DataType::Timestamp(unit, _) => push_time(json, nanoseconds(column, *unit, row))?,
        DataType::Date32 => {
            push_time(json, i128::from(number::<Date32Type>(column, row)) * NANOSECONDS_PER_DAY)?;
        }
        DataType::Date64 => {
            push_time(json, i128::from(number::<Date64Type>(column, row)) * 1_000_000)?;
        }
        other => {
            let message = format!("values of the type {other} are not supported");
            return Err(ArrowError::NotYetImplemented(message));
        }
    }
    Ok(())
}

fn number<T: ArrowPrimitiveType>(column: &dyn Array, row: usize) -> T::Native {
    column.as_primitive::<T>().value(row)
}

/// Returns the time since 1970.
fn nanoseconds(column: &dyn Array, unit: TimeUnit, row: usize) -> i128 {
    let (value, factor) = match unit {
        TimeUnit::Second => (number::<TimestampSecondType>(column, row), 1_000_000_000),
        TimeUnit::Millisecond => (number::<TimestampMillisecondType>(column, row), 1_000_000),
        TimeUnit::Microsecond => (number::<TimestampMicrosecondType>(column, row), 1_000),
        TimeUnit::Nanosecond => (number::<TimestampNanosecondType>(column, row), 1),
    };
    i128::from(value) * factor
}

/// Appends a time in UTC. A time without a zone counts as UTC.
fn push_time(json: &mut Vec<u8>, nanoseconds: i128) -> ArrowResult<()> {
    let time = Timestamp::from_nanosecond(nanoseconds)
        .map_err(|e| ArrowError::ParseError(e.to_string()))?;
    Ok(write!(json, "\"{time}\"")?)
}

fn push_list(json: &mut Vec<u8>, elements: &dyn Array) -> ArrowResult<()> {
    json.push(b'[');
    for index in 0..elements.len() {
        if index > 0 {
            json.push(b',');
        }
        push_value(json, elements, index)?;
    }
    json.push(b']');
    Ok(())
}

/// Appends an object with the keys and values of a map.
fn push_map(json: &mut Vec<u8>, entries: &StructArray) -> ArrowResult<()> {
    let [keys, values] = entries.columns() else {
        return Err(ArrowError::SchemaError(
            "a map without keys and values".into(),
        ));
    };
    json.push(b'{');
    for index in 0..entries.len() {
        if index > 0 {
            json.push(b',');
        }
        push_value(json, keys, index)?;
        json.push(b':');
        push_value(json, values, index)?;
    }
    json.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, ListBuilder};
    use arrow_array::types::Int8Type as Number;
    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
        Int8Array, Int64Array, StringArray, StringViewArray, TimestampSecondArray,
    };

    use super::*;

    #[test]
    fn table_row_becomes_a_line_of_json() {
        let mut lists = ListBuilder::new(Int32Builder::new());
        lists.append_value([Some(1), None]);
        lists.append_value([]);
        let names: DictionaryArray<Number> = [Some("x\"\n"), None].into_iter().collect();
        let decimals = Decimal128Array::from(vec![1250, -5]);
        let columns: [(&str, ArrayRef); 9] = [
            ("list", Arc::new(lists.finish())),
            ("name", Arc::new(names)),
            ("view", Arc::new(StringViewArray::from(vec!["\u{e9}", ""]))),
            (
                "bytes",
                Arc::new(BinaryArray::from(vec![&b"\x00\xfe"[..], b""])),
            ),
            (
                "decimal",
                Arc::new(decimals.with_precision_and_scale(9, 2).unwrap()),
            ),
            (
                "float",
                Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN)])),
            ),
            (
                "time",
                Arc::new(TimestampSecondArray::from(vec![Some(61), None])),
            ),
            ("date", Arc::new(Date32Array::from(vec![1, -1]))),
            ("flag", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert!(
            batch
                .schema()
                .fields()
                .iter()
                .all(|field| is_written(field.data_type()))
        );
        let expected = "{\"list\":[1,null],\"name\":\"x\\\"\\n\",\"view\":\"\u{e9}\",\"bytes\":\"00fe\",\
             \"decimal\":12.50,\"float\":1.0,\"time\":\"1970-01-01T00:01:01Z\",\
             \"date\":\"1970-01-02T00:00:00Z\",\"flag\":true}\n\
             {\"list\":[],\"view\":\"\",\"bytes\":\"\",\"decimal\":-0.05,\"float\":null,\
             \"date\":\"1969-12-31T00:00:00Z\",\"flag\":false}\n";
        let (json, _) = lines(&batch, u64::MAX).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let columns = [
            ("a", batch.columns()[4].clone()),
            ("b", Arc::new(Int64Array::from(vec![1, 2]))),
        ];
        let nested = StructArray::try_from(columns.to_vec()).unwrap();
        let batch = RecordBatch::try_from_iter([("s", Arc::new(nested) as ArrayRef)]).unwrap();
        assert!(
            lines(&batch.slice(1, 1), 1)
                .unwrap()
                .0
                .starts_with(b"{\"s\":{\"a\":-0.05,\"b\":2}}")
        );
    }

    #[test]
    fn lines_of_repeated_values_are_made_few_at_a_time() {
        let long = "word ".repeat(1 << 18);
        let keys = Int8Array::from(vec![0; 64]);
        let values = Arc::new(StringArray::from(vec![long]));
        let texts: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
        let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
        assert_eq!(expanded_bytes(batch.column(0)), (64 * 5) << 18);
        let (json, rows) = lines(&batch, 4 << 20).unwrap();
        assert!(rows < 8 && json.len() < 8 << 20, "{rows} {}", json.len());
    }
}
