//! Circles of imports between sibling modules.
//!
//! A module uses another if anything in it or below it names anything in the other or below it, by `use` or
//! by a path. A name that a module passes on (`pub use`) counts as that of the module where it is written. A
//! child that names its parent, and a parent that names its child, are no circle.

use crate::modules::Crate;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Ident, Item, UseTree, Visibility};

/// Paths that a module names, from the crate's root.
struct Named<'a> {
    module: &'a [String],
    paths: Vec<Vec<String>>,
}

impl Named<'_> {
    /// The path from the root, of one that begins with `crate`, `self` or `super`.
    fn add(&mut self, names: &[String]) {
        let mut from = match names.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.to_vec(),
            _ => return,
        };
        let mut rest = &names[usize::from(names[0] != "super")..];
        while let Some((first, others)) = rest.split_first()
            && first == "super"
        {
            from.pop();
            rest = others;
        }
        from.extend(rest.iter().cloned());
        self.paths.push(from);
    }
}

impl<'ast> Visit<'ast> for Named<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (names, _) in flat(&item.tree) {
            self.add(&names);
        }
    }
}

/// Every path of a `use`, with the name under which it is known.
fn flat(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let under = |ident: &Ident, tree: &UseTree| {
        let first = ident.to_string();
        let below = flat(tree).into_iter();
        below
            .map(|(mut names, known)| {
                if names.last().is_some_and(|name| name == "self") {
                    names.pop();
                }
                names.insert(0, first.clone());
                let known = if known == "self" { first.clone() } else { known };
                (names, known)
            })
            .collect()
    };
    match tree {
        UseTree::Path(path) => under(&path.ident, &path.tree),
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".to_owned()], "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(flat).collect(),
    }
}

/// The circles of a crate: for each, its modules.
pub fn of(this: &Crate) -> Vec<String> {
    let modules: BTreeSet<&[String]> = this.modules.iter().map(|module| &module.path[..]).collect();
    let passed_on = passed_on(this, &modules);
    // By parent, which child uses which.
    let mut uses: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for module in &this.modules {
        let mut named = Named { module: &module.path, paths: Vec::new() };
        module.items.iter().for_each(|item| named.visit_item(item));
        for path in named.paths {
            let target = written_in(&path, &modules, &passed_on);
            let common = module.path.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.path.len() && common < target.len() {
                let children = uses.entry(module.path[..common].to_vec()).or_default();
                children.entry(module.path[common].clone()).or_default().insert(target[common].clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, uses) in &uses {
        for circle in components(uses) {
            let at: Vec<&str> =
                std::iter::once(&*this.name).chain(parent.iter().map(String::as_str)).collect();
            found.push(format!("{}: {}", at.join("::"), circle.join(", ")));
        }
    }
    found
}

/// What each module passes on, by the name under which it does.
type PassedOn = BTreeMap<Vec<String>, Vec<String>>;

fn passed_on(this: &Crate, modules: &BTreeSet<&[String]>) -> PassedOn {
    let mut found = PassedOn::new();
    for module in &this.modules {
        for item in &module.items {
            let Item::Use(item) = item else { continue };
            if matches!(item.vis, Visibility::Inherited) {
                continue;
            }
            for (names, known) in flat(&item.tree) {
                let mut named = Named { module: &module.path, paths: Vec::new() };
                named.add(&names);
                let child: Vec<String> = module.path.iter().cloned().chain(names.first().cloned()).collect();
                if named.paths.is_empty() && modules.contains(&child[..]) {
                    named.paths.push(module.path.iter().cloned().chain(names).collect());
                }
                if let Some(path) = named.paths.pop() {
                    found.insert(module.path.iter().cloned().chain([known]).collect(), path);
                }
            }
        }
    }
    found
}

/// The module in which what a path names is written.
fn written_in(path: &[String], modules: &BTreeSet<&[String]>, passed_on: &PassedOn) -> Vec<String> {
    let mut path = path.to_vec();
    // A name can be passed on by several modules in turn.
    for _ in 0..8 {
        let known = (1..=path.len()).find_map(|len| passed_on.get(&path[..len]).map(|target| (len, target)));
        match known {
            Some((len, target)) if !modules.contains(&path[..len]) => {
                path = target.iter().chain(&path[len..]).cloned().collect();
            }
            _ => break,
        }
    }
    let len = (0..=path.len()).rev().find(|len| modules.contains(&path[..*len])).unwrap_or(0);
    path.truncate(len);
    path
}

/// Sets of two and more children that reach each other.
fn components(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for other in uses.get(&next).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    open.push(other.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reach(name))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (name, others) in &reached {
        if !others.contains(*name) || found.iter().any(|circle| circle.contains(name)) {
            continue;
        }
        let is_mutual = |other: &&String| reached.get(other).is_some_and(|back| back.contains(*name));
        let circle: Vec<String> = others.iter().filter(is_mutual).cloned().collect();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}
