//! A table of Markdown.

use crate::outcome::Outcome;

/// A figure, and how many times better the first engine's is.
#[derive(Clone, Copy)]
pub struct Cell {
    value: f64,
    ratio: Option<f64>,
}

impl Cell {
    pub fn plain(value: f64) -> Self {
        Self { value, ratio: None }
    }

    pub fn with_ratio(value: f64, ratio: Option<f64>) -> Self {
        Self { value, ratio }
    }
}

pub struct Table {
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<Cell>>)>,
}

impl Table {
    pub fn new(outcomes: &[Outcome]) -> Self {
        Self {
            columns: outcomes
                .iter()
                .map(|outcome| outcome.name.clone())
                .collect(),
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, label: String, cells: Vec<Option<Cell>>) {
        self.rows.push((label, cells));
    }

    /// Adds figures compared with the first of them.
    pub fn add_compared(&mut self, label: String, values: &[Option<f64>], more_is_better: bool) {
        let first = values.first().copied().flatten();
        let cell = |value: f64| {
            let ratio = first.map(|first| {
                if more_is_better {
                    first / value
                } else {
                    value / first
                }
            });
            Cell::with_ratio(value, ratio)
        };
        self.add(label, values.iter().map(|value| value.map(cell)).collect());
    }

    /// Adds a row for every label, in the order in which the engines name them.
    pub fn add_figures(&mut self, outcomes: &[Outcome]) {
        let mut labels: Vec<&str> = Vec::new();
        for outcome in outcomes {
            let mut place = 0;
            for figure in &outcome.figures {
                match labels.iter().position(|label| *label == figure.label) {
                    Some(found) => place = found + 1,
                    None => {
                        labels.insert(place, &figure.label);
                        place += 1;
                    }
                }
            }
        }
        for label in labels {
            let figures = outcomes.iter().map(|outcome| outcome.figure(label));
            let more = figures
                .clone()
                .flatten()
                .any(|figure| figure.more_is_better);
            let values: Vec<_> = figures
                .map(|figure| figure.map(|figure| figure.value))
                .collect();
            self.add_compared(label.to_owned(), &values, more);
        }
    }

    /// Prints the table. Ratios are in brackets, except those of the first engine to itself.
    pub fn print(&self) {
        let mut lines = vec![(String::new(), self.columns.clone())];
        for (label, cells) in &self.rows {
            let cells = cells.iter().enumerate();
            let texts = cells.map(|(column, cell)| cell_text(*cell, column > 0));
            lines.push((label.clone(), texts.collect()));
        }
        let width = |column: usize| {
            let texts = lines.iter().filter_map(|(_, texts)| texts.get(column));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let labels = lines.iter().map(|(label, _)| label.chars().count());
        let label_width = labels.max().unwrap_or(0);
        for (number, (label, texts)) in lines.iter().enumerate() {
            print!("| {label:<label_width$} |");
            for (text, width) in texts.iter().zip(&widths) {
                print!(" {text:>width$} |");
            }
            println!();
            if number == 0 {
                print!("|{:-<1$}|", "", label_width + 2);
                for width in &widths {
                    print!("{:-<1$}:|", "", width + 1);
                }
                println!();
            }
        }
        if self.columns.len() > 1 {
            println!(
                "\n(in brackets: how many times better {} is)",
                self.columns.first().map_or("", String::as_str)
            );
        }
    }
}

fn cell_text(cell: Option<Cell>, with_ratio: bool) -> String {
    match cell {
        None => "–".to_owned(),
        Some(Cell { value, ratio }) => match ratio.filter(|one| with_ratio && one.is_finite()) {
            Some(ratio) => format!("{} ({})", number(value), number(ratio)),
            None => number(value),
        },
    }
}

/// Three digits that mean something, thousands apart.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 10.0 => 2,
        size if size < 1000.0 => 1,
        _ => return grouped(value),
    };
    format!("{value:.decimals$}")
}

/// A whole number, thousands apart.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        let texts = [
            0.0,
            0.125,
            9.5,
            12.34,
            999.9,
            1000.0,
            1_234_567.8,
            -45_000.0,
        ]
        .map(number);
        let expected = [
            "0",
            "0.12",
            "9.50",
            "12.3",
            "999.9",
            "1,000",
            "1,234,568",
            "-45,000",
        ];
        assert_eq!(texts, expected);
    }
}
