//! The modules of a crate, read from its files.

use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta};

/// A crate's production code.
pub struct Crate {
    /// Its folder's name.
    pub name: String,
    /// Root first, parents before children.
    pub modules: Vec<Module>,
    /// Files, with the lines of production code in each.
    pub files: Vec<File>,
}

/// A file of production code.
pub struct File {
    /// From the workspace's root.
    pub path: String,
    /// All lines but those of test modules.
    pub lines: usize,
    /// Of these, those that are neither blank nor a comment alone.
    pub code: usize,
}

/// A module and its items, without those of its child modules.
pub struct Module {
    /// Names from the root, which is empty.
    pub path: Vec<String>,
    /// Items that are not modules.
    pub items: Vec<Item>,
}

/// All crates of a folder.
pub fn crates(folder: &Path) -> Result<Vec<Crate>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    let mut found = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let root = ["src/lib.rs", "src/main.rs"]
            .map(|file| folder.join(file))
            .into_iter()
            .find(|file| file.exists());
        let Some(root) = root else { continue };
        let mut one = Crate { name, modules: Vec::new(), files: Vec::new() };
        read(&root, &[], &mut one)?;
        found.push(one);
    }
    Ok(found)
}

/// Reads the file of a module and those of its children.
fn read(path: &Path, names: &[String], into: &mut Crate) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let parsed = syn::parse_file(&text)
        .map_err(|error| format!("{}:{}: {error}", path.display(), error.span().start().line))?;
    let mut is_test = vec![false; text.lines().count() + 1];
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let below =
        if matches!(&*stem, "mod" | "lib" | "main") { folder.to_owned() } else { folder.join(&*stem) };
    add(parsed.items, names, (folder, &below), into, &mut is_test)?;
    let lines: Vec<&str> =
        text.lines().zip(&is_test[1..]).filter(|(_, is_test)| !**is_test).map(|(line, _)| line).collect();
    let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    into.files.push(File {
        path: format!(
            "crates/{}",
            path.to_string_lossy().rsplit_once("crates/").map_or("", |(_, rest)| rest)
        ),
        lines: lines.len(),
        code: lines.iter().filter(is_code).count(),
    });
    Ok(())
}

/// Adds a module with these items; its children are in `below`, or in `folder` where they name their file.
fn add(
    items: Vec<Item>,
    names: &[String],
    (folder, below): (&Path, &Path),
    into: &mut Crate,
    is_test: &mut [bool],
) -> Result<(), String> {
    let at = into.modules.len();
    into.modules.push(Module { path: names.to_vec(), items: Vec::new() });
    for item in items {
        if attributes(&item).iter().any(is_for_tests) {
            let span = syn::spanned::Spanned::span(&item);
            is_test[span.start().line..=span.end().line].fill(true);
            continue;
        }
        let Item::Mod(module) = item else {
            into.modules[at].items.push(item);
            continue;
        };
        let name = module.ident.to_string();
        let names: Vec<String> = names.iter().cloned().chain([name.clone()]).collect();
        if let Some((_, items)) = module.content {
            let below = below.join(&name);
            add(items, &names, (&below, &below), into, is_test)?;
            continue;
        }
        let named = module.attrs.iter().find_map(path_of);
        let file = match named {
            Some(file) => folder.join(file),
            None => [below.join(format!("{name}.rs")), below.join(&name).join("mod.rs")]
                .into_iter()
                .find(|file| file.exists())
                .ok_or_else(|| format!("{}: no file of module {name}", below.display()))?,
        };
        read(&file, &names, into)?;
    }
    Ok(())
}

/// `#[cfg(test)]`, or a condition that needs it.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
    let text = list.tokens.to_string();
    list.path.is_ident("cfg")
        && (text == "test" || text.starts_with("all (test") || text.starts_with("all(test"))
}

fn path_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| text.value())
}

/// The attributes of any item.
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
