//! The public items of a crate, and the examples that their documentation has.

use std::collections::BTreeSet;

use syn::{Attribute, ImplItem, Item, TraitItem, Visibility};

use super::source_tree::{SourceFile, SourceTree};

/// Examples of documentation, and what they show.
#[derive(Default)]
struct Examples {
    /// Methods, functions and variants that a visible line names behind a dot or a colon.
    named: BTreeSet<String>,
    count: usize,
}

/// The text of doc comments.
fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && let syn::Expr::Lit(literal) = &pair.value
            && let syn::Lit::Str(line) = &literal.lit
        {
            text += &line.value();
            text.push('\n');
        }
    }
    text
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "hidden")
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

impl Examples {
    /// Adds the blocks of code that rustdoc compiles.
    fn add(&mut self, attributes: &[Attribute]) {
        self.add_text(&documentation(attributes));
    }

    fn add_text(&mut self, documentation: &str) {
        let mut is_code = false;
        let mut is_example = false;
        for line in documentation.lines() {
            let line = line.trim();
            if let Some(language) = line.strip_prefix("```") {
                is_example = !is_code && ["", "no_run", "should_panic"].contains(&language);
                is_code = !is_code;
                self.count += usize::from(is_example);
            } else if is_example && line != "#" && !line.starts_with("# ") {
                self.add_line(line);
            }
        }
    }

    fn add_line(&mut self, line: &str) {
        let comment = line.find(" // ").unwrap_or(line.len());
        let line = if line.starts_with("//") {
            ""
        } else {
            &line[..comment]
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        for (at, c) in line.char_indices() {
            let rest = &line[at + c.len_utf8()..];
            if c == '.' || (c == ':' && line[..at].ends_with(':')) {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.named.insert(rest[..end].to_owned());
            }
        }
    }

    fn of(attributes: &[Attribute]) -> Self {
        let mut examples = Self::default();
        examples.add(attributes);
        examples
    }
}

/// The public items that lack an example.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) types: usize,
    pub(crate) functions: usize,
    pub(crate) without: Vec<String>,
}

impl Shown {
    fn add_type(&mut self, name: &str, attributes: &[Attribute]) {
        self.types += 1;
        if Examples::of(attributes).count == 0 {
            self.without.push(name.to_owned());
        }
    }

    /// A function or a method; `owner` has the examples of its type, trait or module.
    fn add_function(&mut self, name: &str, attributes: &[Attribute], owner: &Examples) {
        if is_hidden(attributes) {
            return;
        }
        self.functions += 1;
        let own_name = name.rsplit("::").next().unwrap();
        if Examples::of(attributes).count == 0 && !owner.named.contains(own_name) {
            self.without.push(name.to_owned());
        }
    }
}

/// The name of a public item that a line declares after these words.
fn declared<'l>(line: &'l str, kinds: &[&str]) -> Option<&'l str> {
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

impl Shown {
    /// Adds a type that the macro of a file makes, and its methods. All examples of the file are its own,
    /// since a macro may be given its documentation from elsewhere in the file.
    fn add_made_by_macro(&mut self, text: &str, name: &str, full: &str) {
        let lines = || text.lines().map(str::trim);
        let mut examples = Examples::default();
        let documentation = lines().filter_map(|line| line.strip_prefix("///"));
        examples.add_text(&documentation.collect::<Vec<_>>().join("\n"));
        let is_type = |line| declared(line, &["pub struct ", "pub enum "]) == Some(name);
        self.types += 1;
        if examples.count == 0 || !lines().any(is_type) {
            self.without.push(full.to_owned());
        }
        for line in lines() {
            if let Some(method) = declared(line, &["pub fn ", "pub const fn "]) {
                self.add_function(&format!("{full}::{method}"), &[], &examples);
            }
        }
    }
}

impl SourceTree {
    /// Goes through everything that can be reached from the crate's root.
    pub(crate) fn examples(&self) -> Shown {
        let mut shown = Shown::default();
        let mut seen = BTreeSet::new();
        self.add_module(&self.files[&Vec::new()], "", &mut seen, &mut shown);
        shown
    }

    fn add_module(
        &self,
        file: &SourceFile,
        prefix: &str,
        seen: &mut BTreeSet<String>,
        shown: &mut Shown,
    ) {
        if !seen.insert(file.path.clone()) {
            return;
        }
        self.add_items(file, &file.syntax.items, prefix, seen, shown);
    }

    /// Goes through the items of a file, or of a module within it.
    fn add_items(
        &self,
        file: &SourceFile,
        items: &[Item],
        prefix: &str,
        seen: &mut BTreeSet<String>,
        shown: &mut Shown,
    ) {
        for item in items {
            match item {
                Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    let mut found = Vec::new();
                    super::source_tree::leaves(&item.tree, &mut Vec::new(), &mut found);
                    // Other crates show the items that they define.
                    let own = |path: &[String]| {
                        let child = [file.module.clone(), vec![path[0].clone()]].concat();
                        ["crate", "self", "super"].contains(&&*path[0])
                            || self.files.contains_key(&child)
                    };
                    for (name, path) in found.into_iter().filter(|(_, path)| own(path)) {
                        let (path, defined) = self
                            .resolve(file, &path, 0)
                            .unwrap_or_else(|| panic!("{name} of {} is not found", file.path));
                        let target = self.files.values().find(|file| file.path == path).unwrap();
                        if defined == "self" {
                            self.add_module(target, &format!("{prefix}{name}::"), seen, shown);
                        } else {
                            self.add_item(target, &defined, prefix, shown);
                        }
                    }
                }
                Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    let name = item.ident.to_string();
                    let prefix = format!("{prefix}{name}::");
                    if let Some((_, items)) = &item.content {
                        self.add_items(file, items, &prefix, seen, shown);
                        continue;
                    }
                    let module = [file.module.clone(), vec![name]].concat();
                    self.add_module(&self.files[&module], &prefix, seen, shown);
                }
                item => {
                    if let Some((name, visibility)) = super::source_tree::visible_name(item)
                        && is_public(visibility)
                    {
                        self.add_item(file, &name, prefix, shown);
                    }
                }
            }
        }
    }

    /// Adds what a file defines under a name, with the methods of a type.
    fn add_item(&self, file: &SourceFile, name: &str, prefix: &str, shown: &mut Shown) {
        let full = format!("{prefix}{name}");
        if !file.defined.contains(name) {
            shown.add_made_by_macro(&file.text, name, &full);
        }
        for item in &file.syntax.items {
            let Some((defined, attributes)) = super::source_tree::name_of(item) else {
                continue;
            };
            if defined != name || is_hidden(attributes) {
                continue;
            }
            match item {
                Item::Fn(item) => {
                    shown.add_function(&full, &item.attrs, &Examples::of(&file.syntax.attrs));
                }
                Item::Trait(item) => {
                    shown.add_type(&full, attributes);
                    let owner = Examples::of(attributes);
                    for part in &item.items {
                        if let TraitItem::Fn(method) = part {
                            let method_name = format!("{full}::{}", method.sig.ident);
                            shown.add_function(&method_name, &method.attrs, &owner);
                        }
                    }
                }
                Item::Struct(_) | Item::Enum(_) | Item::Type(_) => {
                    shown.add_type(&full, attributes);
                    self.add_methods(name, &full, attributes, shown);
                }
                _ => {
                    if Examples::of(attributes).count == 0 {
                        shown.without.push(full.clone());
                    }
                }
            }
        }
    }

    /// Adds the public methods of a type, whose name is unique in the crate.
    fn add_methods(&self, name: &str, full: &str, attributes: &[Attribute], shown: &mut Shown) {
        let items = self.files.values().flat_map(|file| &file.syntax.items);
        let blocks = items.filter_map(|item| match item {
            Item::Impl(block) if block.trait_.is_none() => Some(block),
            _ => None,
        });
        for block in blocks {
            let syn::Type::Path(owner) = &*block.self_ty else {
                continue;
            };
            if owner.path.segments.last().unwrap().ident != name {
                continue;
            }
            let mut examples = Examples::of(attributes);
            examples.add(&block.attrs);
            for part in &block.items {
                if let ImplItem::Fn(method) = part
                    && is_public(&method.vis)
                {
                    let method_name = format!("{full}::{}", method.sig.ident);
                    shown.add_function(&method_name, &method.attrs, &examples);
                }
            }
        }
    }
}
