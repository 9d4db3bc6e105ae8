//! A crate's modules as `syn` reads them: what each defines, imports and names, and the file that a path leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMacro, ItemMod, ItemUse, UseTree};

/// The longest chain of re-exports that is followed. Longer ones are circles of imports.
const MAX_REEXPORTS: usize = 16;

/// A path in the source text, for example `["crate", "trie", "Node"]`.
pub(crate) type Segments = Vec<String>;

/// One module, in a file of its own or inline.
#[derive(Default)]
pub(crate) struct Module {
    /// The path of the module from the crate's root; empty for the root.
    pub(crate) path: Segments,
    /// The file, relative to the crate's source folder.
    pub(crate) file: PathBuf,
    /// The path of the file's own module, which an inline module is part of.
    pub(crate) file_path: Segments,
    /// Whether the module is compiled for tests only.
    pub(crate) test: bool,
    /// Paths in the module, and whether each is compiled for tests only.
    pub(crate) named: Vec<(Segments, bool)>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Segments>,
    globs: Vec<Segments>,
}

/// All modules of a crate by their paths.
pub(crate) struct Modules {
    modules: BTreeMap<Segments, Module>,
    crate_name: &'static str,
}

impl Modules {
    /// Reads every `.rs` file below a crate's source folder.
    pub(crate) fn read(folder: &Path, crate_name: &'static str) -> Self {
        let files = rust_files(folder).into_iter().map(|path| {
            let source = fs::read_to_string(&path).expect("the source is readable");
            (path.strip_prefix(folder).expect("a file below the folder").to_path_buf(), source)
        });
        Self::parse(files.collect(), crate_name)
    }

    /// Parses files, given by their paths below the source folder.
    pub(crate) fn parse(files: Vec<(PathBuf, String)>, crate_name: &'static str) -> Self {
        let mut all = Self { modules: BTreeMap::new(), crate_name };
        let mut test_files = BTreeSet::new();
        let root = if files.iter().any(|(file, _)| file == Path::new("lib.rs")) { "lib" } else { "main" };
        for (file, source) in files {
            let syntax = syn::parse_file(&source).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let path = module_path(&file, root);
            let module = Module { file_path: path.clone(), path, file, ..Module::default() };
            let mut reader = ModuleReader {
                root,
                stack: vec![module],
                test: false,
                done: Vec::new(),
                test_files: &mut test_files,
            };
            reader.visit_file(&syntax);
            let ModuleReader { stack, done, .. } = reader;
            all.modules.extend(stack.into_iter().chain(done).map(|module| (module.path.clone(), module)));
        }
        for (path, module) in &mut all.modules {
            module.test |= (0..=path.len()).any(|end| test_files.contains(&path[..end]));
        }
        all
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    /// The path from the crate's root that a path in `module` spells, or `None` for paths that do not begin with
    /// `crate`, `self`, `super` or the crate's name.
    pub(crate) fn absolute(&self, module: &Module, path: &[String]) -> Option<Segments> {
        let first = path.first()?.as_str();
        let ups = path.iter().take_while(|segment| *segment == "super").count();
        match first {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([&module.path[..], &path[1..]].concat()),
            "super" => {
                let base = &module.path[..module.path.len().saturating_sub(ups)];
                Some([base, &path[ups..]].concat())
            }
            _ if first == self.crate_name && !module.items.contains(first) => Some(path[1..].to_vec()),
            _ => None,
        }
    }

    /// The module whose file defines what a path in `module` names; re-exports are followed.
    pub(crate) fn target(&self, module: &Module, path: &[String]) -> Option<&Module> {
        self.resolve(module, path, 0)
    }

    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let (start, rest) = match self.absolute(module, path) {
            Some(absolute) => (self.modules.get(&Vec::new())?, absolute),
            None => (self.modules.get(&module.path)?, path.to_vec()),
        };
        self.descend(start, &rest, depth)
    }

    /// Follows a path from a module down to an item or a module.
    fn descend(&self, from: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let here = self.modules.get(&from.path)?;
        let Some((name, rest)) = path.split_first() else { return Some(here) };
        if depth > MAX_REEXPORTS {
            return None;
        }
        if let Some(child) = self.modules.get(&[&here.path[..], std::slice::from_ref(name)].concat()) {
            return self.descend(child, rest, depth);
        }
        if here.items.contains(name) {
            return Some(here);
        }
        if let Some(import) = here.imports.get(name) {
            // An import of the same name from another crate, for example `use serde_json;`, leads nowhere.
            let leads_on = import.first() != Some(name);
            return leads_on.then(|| self.resolve(here, &[import, rest].concat(), depth + 1)).flatten();
        }
        let from_glob = |glob: &Segments| self.resolve(here, &[glob, path].concat(), depth + 1);
        here.globs.iter().find_map(from_glob)
    }
}

/// The module path of a file below the source folder: `trie/node.rs` is `["trie", "node"]`.
fn module_path(file: &Path, root: &str) -> Segments {
    let mut path: Segments =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let last = path.last().map(String::as_str);
    if last == Some("mod") || (path.len() == 1 && last == Some(root)) {
        path.pop();
    }
    path
}

/// All `.rs` files below a folder, sorted, without build output.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !["target", "node_modules", "dist"].iter().any(|output| name == *output) {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Collects the modules of one file.
struct ModuleReader<'a> {
    /// `lib` or `main`: the name of the crate's root file.
    root: &'a str,
    /// The module that is being read, below those around it.
    stack: Vec<Module>,
    /// Whether an item around the current one is compiled for tests only.
    test: bool,
    done: Vec<Module>,
    test_files: &'a mut BTreeSet<Segments>,
}

impl ModuleReader<'_> {
    fn module(&mut self) -> &mut Module {
        self.stack.last_mut().expect("a file is a module")
    }

    fn name(&mut self, path: Segments) {
        let test = self.test;
        self.module().named.push((path, test));
    }

    /// Records every path of a `use` tree, and what each brings into scope.
    fn import(&mut self, prefix: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [prefix, &[plain(name)]].concat();
        match tree {
            UseTree::Path(path) => self.import(&with(&path.ident), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(prefix, tree)),
            UseTree::Name(name) if name.ident == "self" => {
                self.bring(prefix.last().cloned().unwrap_or_default(), prefix.to_vec());
            }
            UseTree::Name(name) => self.bring(plain(&name.ident), with(&name.ident)),
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.bring(plain(&rename.rename), prefix.to_vec());
            }
            UseTree::Rename(rename) => self.bring(plain(&rename.rename), with(&rename.ident)),
            UseTree::Glob(_) => {
                self.module().globs.push(prefix.to_vec());
                self.name(prefix.to_vec());
            }
        }
    }

    fn bring(&mut self, name: String, path: Segments) {
        self.module().imports.insert(name, path.clone());
        self.name(path);
    }

    /// Records the paths in a macro's tokens: words that `::` joins.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut path = Segments::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(word) if colons == 2 => {
                    path.push(plain(&word));
                    colons = 0;
                }
                other => {
                    self.end_of_path(&mut path);
                    colons = 0;
                    match other {
                        TokenTree::Ident(word) => path.push(plain(&word)),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.end_of_path(&mut path);
    }

    fn end_of_path(&mut self, path: &mut Segments) {
        if path.len() > 1 {
            self.name(path.clone());
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for ModuleReader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let outer = self.test;
        self.test |= for_tests(attributes(item));
        if let Some(name) = defined(item) {
            self.module().items.insert(name);
        }
        visit::visit_item(self, item);
        self.test = outer;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let outer = self.test;
        self.test |= for_tests(&function.attrs);
        visit::visit_impl_item_fn(self, function);
        self.test = outer;
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let outer = self.module();
        let (file, file_path) = (outer.file.clone(), outer.file_path.clone());
        let path = [&outer.path[..], &[plain(&item.ident)]].concat();
        let Some((_, items)) = &item.content else {
            if self.test {
                let other =
                    file_of(&item.attrs).map(|name| module_path(&file.with_file_name(name), self.root));
                self.test_files.insert(other.unwrap_or(path));
            }
            return;
        };
        self.stack.push(Module { path, file, file_path, test: self.test, ..Module::default() });
        items.iter().for_each(|item| self.visit_item(item));
        let module = self.stack.pop().expect("the module that was pushed");
        self.done.push(module);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // A path with a leading `::` names another crate, or this one by its name in its own tests and examples.
        self.import(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = segments(path);
        // A single word in lower case is a variable, or a function that an import names already.
        if segments.len() > 1 || segments[0].starts_with(char::is_uppercase) {
            self.name(segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func {
            self.name(segments(&function.path));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(in path)` imports nothing.
    }
}

/// An identifier without `r#`.
fn plain(name: &syn::Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

fn segments(path: &syn::Path) -> Segments {
    path.segments.iter().map(|segment| plain(&segment.ident)).collect()
}

/// Whether attributes say `#[cfg(test)]`, `#[cfg(all(test, ...))]` or `#[test]`.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Ok(condition) = attribute.meta.require_list() else { return attribute.path().is_ident("test") };
        let text = condition.tokens.to_string();
        let mut words = text.split(|mark: char| !mark.is_alphanumeric() && mark != '_');
        let narrows = !["any", "not"].iter().any(|word| words.clone().any(|other| other == *word));
        condition.path.is_ident("cfg") && narrows && words.any(|word| word == "test")
    })
}

/// The file that `#[path = "..."]` names.
fn file_of(attributes: &[Attribute]) -> Option<String> {
    let named = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &named.meta.require_name_value().ok()?.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) => Some(name.value()),
        _ => None,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(ItemMacro { ident: Some(name), .. }) => name,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(name))
}
