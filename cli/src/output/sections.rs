//! Results as sections: tables with titles, or one measure a line.

use serde_json::Map;

use super::results::{Layout, Results};
use super::value::{Column, Value};
use crate::failure::Result;

/// A table with a title; each row is an item with a value for every measure.
pub(crate) struct Section<'a> {
    /// The name, which is also that of the column of items.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// Their names, with spaces between.
    pub(crate) measures: &'static str,
    pub(crate) rows: Vec<SectionRow<'a>>,
}

/// An item and its values.
pub(crate) struct SectionRow<'a> {
    pub(crate) item: SectionItem,
    pub(crate) values: Vec<Value<'a>>,
}

/// The subject of a row.
pub(crate) enum SectionItem {
    Number(u64),
    Name(String),
}

impl SectionItem {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Number(number) => Value::Count(*number),
            Self::Name(name) => Value::Text(name),
        }
    }
}

impl Section<'_> {
    /// Creates items with one count for each measure.
    pub(crate) fn of_counts<const N: usize>(
        name: &'static str,
        title: String,
        measures: &'static str,
        items: impl Iterator<Item = (SectionItem, [u64; N])>,
    ) -> Self {
        let rows = items.map(|(item, counts)| SectionRow {
            item,
            values: counts.map(Value::Count).into(),
        });
        Self {
            name,
            title,
            measures,
            rows: rows.collect(),
        }
    }

    /// Prints the title and the table.
    pub(crate) fn print_table(&self) -> Result<()> {
        let layout = Layout::table();
        layout.paragraph(&format!("\n{}", self.title))?;
        let names = std::iter::once(self.name).chain(self.measures.split_whitespace());
        let mut results = Results::new(layout, names.map(Column::new).collect())?;
        for row in &self.rows {
            results.row(&[&[row.item.value()], &row.values[..]].concat())?;
        }
        results.finish()
    }

    /// The measures of all items as JSON, without the items.
    pub(crate) fn measured(&self) -> Map<String, serde_json::Value> {
        let values = self.rows.iter().flat_map(|row| &row.values);
        let named = self.measures.split_whitespace().zip(values);
        named
            .map(|(name, value)| (name.to_owned(), value.json()))
            .collect()
    }

    /// One JSON object for each item.
    pub(crate) fn objects(&self) -> Vec<Map<String, serde_json::Value>> {
        let names = || std::iter::once(self.name).chain(self.measures.split_whitespace());
        let object = |row: &SectionRow<'_>| {
            let values = std::iter::once(row.item.value()).chain(row.values.iter().copied());
            names()
                .zip(values)
                .map(|(name, value)| (name.to_owned(), value.json()))
                .collect()
        };
        self.rows.iter().map(object).collect()
    }

    /// Writes a line for each measure of each item.
    pub(crate) fn write_measures(&self, lines: &mut Results) -> Result<()> {
        for row in &self.rows {
            let value = row.item.value();
            let item = value.text();
            for (measure, value) in self.measures.split_whitespace().zip(&row.values) {
                lines.measure(self.name, &item, measure, *value)?;
            }
        }
        Ok(())
    }
}

impl Results {
    /// Results of one measure a line.
    pub(crate) fn of_measures(layout: Layout) -> Result<Self> {
        Self::new(layout, Column::list("section item measure value"))
    }

    /// Writes a measure of an item.
    pub(crate) fn measure(
        &mut self,
        section: &str,
        item: &str,
        measure: &str,
        value: Value<'_>,
    ) -> Result<()> {
        let [section, item, measure] = [section, item, measure].map(Value::Text);
        self.row(&[section, item, measure, value])
    }
}
