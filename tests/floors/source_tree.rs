//! The source files of a crate, and what they import of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// The parts of a path, with `crate` in front if the file has it.
type Parts = Vec<String>;

/// Imports of each file: the file that defines the name, and the name.
pub(crate) type Imports = BTreeMap<String, BTreeSet<(String, String)>>;

pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) module: Parts,
    pub(super) text: String,
    pub(super) syntax: syn::File,
    /// Names that the file defines itself.
    pub(super) defined: BTreeSet<String>,
    /// Names that it imports or exports again, and their paths.
    used: Vec<(String, Parts)>,
    paths: Paths,
}

/// The modules of a crate, without those for tests.
pub(crate) struct SourceTree {
    pub(super) files: BTreeMap<Parts, SourceFile>,
}

/// Whether something is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let text = quote_text(attribute);
        is_cfg && text.contains("test") && !text.contains("not (test") && !text.contains("fuzzing")
    })
}

fn quote_text(attribute: &Attribute) -> String {
    match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

pub(super) fn name_of(item: &Item) -> Option<(String, &[Attribute])> {
    Some(match item {
        Item::Const(item) => (item.ident.to_string(), &item.attrs),
        Item::Enum(item) => (item.ident.to_string(), &item.attrs),
        Item::Fn(item) => (item.sig.ident.to_string(), &item.attrs),
        Item::Static(item) => (item.ident.to_string(), &item.attrs),
        Item::Struct(item) => (item.ident.to_string(), &item.attrs),
        Item::Trait(item) => (item.ident.to_string(), &item.attrs),
        Item::Type(item) => (item.ident.to_string(), &item.attrs),
        Item::Macro(item) => (item.ident.as_ref()?.to_string(), &item.attrs),
        _ => return None,
    })
}

/// The name of an item that can be public, and its visibility.
pub(super) fn visible_name(item: &Item) -> Option<(String, &Visibility)> {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        _ => return None,
    };
    Some((name_of(item)?.0, visibility))
}

/// The names that a `use` brings, each with its whole path.
pub(super) fn leaves(tree: &UseTree, prefix: &mut Parts, found: &mut Vec<(String, Parts)>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            leaves(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Group(group) => {
            group
                .items
                .iter()
                .for_each(|item| leaves(item, prefix, found));
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.push((prefix.last().cloned().unwrap_or_default(), prefix.clone()));
        }
        UseTree::Name(name) => {
            let path = [prefix.clone(), vec![name.ident.to_string()]].concat();
            found.push((name.ident.to_string(), path));
        }
        UseTree::Rename(rename) => {
            let path = [prefix.clone(), vec![rename.ident.to_string()]].concat();
            found.push((rename.rename.to_string(), path));
        }
        UseTree::Glob(_) => {}
    }
}

/// All paths of code that is not for tests.
#[derive(Default)]
struct Paths {
    found: Vec<Parts>,
    functions: Vec<(String, usize)>,
    macros: Vec<String>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            item => name_of(item).map_or(&[], |(_, attributes)| attributes),
        };
        if is_for_tests(attributes) {
            return;
        }
        if let Item::Use(item) = item {
            let mut found = Vec::new();
            leaves(&item.tree, &mut Vec::new(), &mut found);
            self.found.extend(found.into_iter().map(|(_, path)| path));
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|part| part.ident.to_string());
        let parts: Parts = parts.collect();
        // A visibility such as `pub(crate)` is a path too, and no import.
        let is_visibility = parts
            .iter()
            .all(|part| ["crate", "super", "self"].contains(&&**part));
        if !is_visibility {
            self.found.push(parts);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.count(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            self.count(&item.sig, item.block.span());
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.macros.push(item.tokens.to_string());
        visit::visit_macro(self, item);
    }
}

impl Paths {
    fn count(&mut self, signature: &syn::Signature, block: proc_macro2::Span) {
        let first = signature.span().start().line;
        let lines = block.end().line + 1 - first;
        self.functions.push((signature.ident.to_string(), lines));
    }
}

impl SourceTree {
    /// Reads the modules that are declared from a crate's root file on.
    pub(crate) fn read(folder: &Path, root: &str) -> Self {
        let mut tree = Self {
            files: BTreeMap::new(),
        };
        tree.add(root, Vec::new(), &|path| {
            fs::read_to_string(folder.join(path)).ok()
        });
        tree
    }

    /// A tree of texts, for tests of this file.
    pub(crate) fn of(texts: &[(&str, &str)]) -> Self {
        let mut tree = Self {
            files: BTreeMap::new(),
        };
        tree.add("lib.rs", Vec::new(), &|path| {
            let text = texts.iter().find(|(name, _)| *name == path);
            text.map(|(_, text)| (*text).to_owned())
        });
        tree
    }

    fn add(&mut self, path: &str, module: Parts, read: &dyn Fn(&str) -> Option<String>) {
        let text = read(path).unwrap_or_else(|| panic!("{path} cannot be read"));
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let folder = match path.rsplit_once('/') {
            Some((folder, "mod.rs")) => format!("{folder}/"),
            Some(_) => format!("{}/", path.trim_end_matches(".rs")),
            None if path == "lib.rs" || path == "main.rs" => String::new(),
            None => format!("{}/", path.trim_end_matches(".rs")),
        };
        let mut used = Vec::new();
        for item in &syntax.items {
            match item {
                Item::Mod(item) if item.content.is_none() && !is_for_tests(&item.attrs) => {
                    let name = item.ident.to_string();
                    let candidates = [
                        format!("{folder}{name}.rs"),
                        format!("{folder}{name}/mod.rs"),
                    ];
                    let found = candidates.iter().find(|path| read(path).is_some());
                    let found =
                        found.unwrap_or_else(|| panic!("{path}: no file for module {name}"));
                    self.add(found, [module.clone(), vec![name]].concat(), read);
                }
                Item::Use(item) if !is_for_tests(&item.attrs) => {
                    leaves(&item.tree, &mut Vec::new(), &mut used);
                }
                _ => {}
            }
        }
        let defined = syntax
            .items
            .iter()
            .filter_map(name_of)
            .map(|(name, _)| name);
        let defined = defined.collect();
        let mut paths = Paths::default();
        paths.visit_file(&syntax);
        let file = SourceFile {
            path: path.to_owned(),
            module: module.clone(),
            text,
            syntax,
            defined,
            used,
            paths,
        };
        self.files.insert(module, file);
    }

    /// The file that defines what a path names, and the name; nothing for other crates.
    pub(super) fn resolve(
        &self,
        from: &SourceFile,
        path: &[String],
        depth: usize,
    ) -> Option<(String, String)> {
        if depth > 12 {
            return None;
        }
        let (mut module, mut rest) = (from.module.clone(), path);
        match rest.first()?.as_str() {
            "crate" => (module, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    module.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [module.clone(), vec![first.to_owned()]].concat();
                if !from.defined.contains(first) && !self.files.contains_key(&child) {
                    let (_, whole) = from.used.iter().find(|(name, _)| name == first)?;
                    if whole.first().is_some_and(|part| part == first) {
                        return None;
                    }
                    let whole = [whole, &rest[1..]].concat();
                    return self.resolve(from, &whole, depth + 1);
                }
            }
        }
        loop {
            let file = self.files.get(&module)?;
            let Some(name) = rest.first() else {
                return Some((file.path.clone(), "self".into()));
            };
            let child = [module.clone(), vec![name.clone()]].concat();
            if self.files.contains_key(&child) && !(rest.len() == 1 && file.defined.contains(name))
            {
                (module, rest) = (child, &rest[1..]);
                continue;
            }
            if file.defined.contains(name) {
                return Some((file.path.clone(), name.clone()));
            }
            return match file.used.iter().find(|(used, _)| used == name) {
                // The rooms of a crate of this workspace that the root names.
                Some((_, path)) if path[0].starts_with("resemblance_") => None,
                Some((_, path)) => {
                    let whole = [path, &rest[1..]].concat();
                    let found = self.resolve(file, &whole, depth + 1);
                    // A re-export from another crate belongs to this file.
                    found.or_else(|| Some((file.path.clone(), name.clone())))
                }
                // Made by a macro.
                None => Some((file.path.clone(), name.clone())),
            };
        }
    }

    /// Returns what each file imports from others. Re-exports are followed instead of counting as
    /// imports.
    pub(crate) fn imports(&self) -> Imports {
        let mut all = Imports::new();
        for file in self.files.values() {
            if file.path.ends_with("mod.rs") || file.path == "lib.rs" {
                continue;
            }
            let found = all.entry(file.path.clone()).or_default();
            for path in &file.paths.found {
                let resolved = self.resolve(file, path, 0);
                found.extend(resolved.filter(|(target, _)| *target != file.path));
            }
        }
        all
    }

    /// Files with code, macros included, that names another crate.
    pub(crate) fn files_that_name(&self, crate_name: &str) -> Vec<String> {
        let in_macro = format!("{crate_name} ::");
        let names = |file: &&SourceFile| {
            let paths = &file.paths;
            paths.found.iter().any(|path| path[0] == crate_name)
                || paths.macros.iter().any(|tokens| tokens.contains(&in_macro))
        };
        self.files
            .values()
            .filter(names)
            .map(|file| file.path.clone())
            .collect()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.files.values().map(|file| file.path.clone()).collect()
    }

    /// All functions that are not for tests, with their lengths in lines.
    pub(crate) fn functions(&self) -> Vec<(String, usize)> {
        let of_file = |file: &SourceFile| {
            let path = file.path.clone();
            let functions = file.paths.functions.iter();
            functions
                .map(move |(name, lines)| (format!("{path} {name}"), *lines))
                .collect::<Vec<_>>()
        };
        self.files.values().flat_map(of_file).collect()
    }

    /// The types of the crate, and the files that define one of that name.
    pub(crate) fn types(&self) -> BTreeMap<String, Vec<String>> {
        let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in self.files.values() {
            for item in &file.syntax.items {
                if matches!(
                    item,
                    Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_)
                ) {
                    let (name, _) = name_of(item).unwrap();
                    types.entry(name).or_default().push(file.path.clone());
                }
            }
        }
        types
    }
}

/// Groups of files of which each reaches each other, in order.
pub(crate) fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            for (target, _) in imports.get(file).into_iter().flatten() {
                if imports.contains_key(target) && seen.insert(target.clone()) {
                    open.push(target);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|f| (f, reached(f))).collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (file, targets) in &reach {
        if targets.contains(*file) {
            let members = targets
                .iter()
                .filter(|t| reach.get(t).is_some_and(|r| r.contains(*file)));
            circles.insert(members.cloned().collect());
        }
    }
    circles.into_iter().collect()
}
