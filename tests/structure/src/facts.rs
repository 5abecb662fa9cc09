//! What is counted in a crate.

use crate::modules::Crate;
use crate::{DATA_PATH, circles};
use syn::spanned::Spanned as _;
use syn::{Block, Expr, Fields, ImplItem, Item, Stmt, TraitItem, Type};

/// Something with a count.
pub struct Counted {
    /// Crate, modules and name.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Of a struct: its fields are numbers, texts and such alone.
    pub is_plain: bool,
}

/// A crate's facts.
pub struct Facts {
    /// The crate.
    pub name: String,
    /// Methods of each trait.
    pub traits: Vec<Counted>,
    /// Fields of each struct, on the data path.
    pub structs: Vec<Counted>,
    /// Circles of modules.
    pub circles: Vec<String>,
    /// Lines of each file.
    pub files: Vec<Counted>,
    /// Lines of each forwarding method.
    pub forwarding: Vec<Counted>,
    /// Lines of production code.
    pub lines: usize,
    /// Of these, those that are neither blank nor comments.
    pub code: usize,
}

impl Facts {
    /// Of a crate.
    pub fn of(this: &Crate) -> Self {
        let mut facts = Self {
            name: this.name.clone(),
            traits: Vec::new(),
            structs: Vec::new(),
            circles: circles::of(this),
            files: Vec::new(),
            forwarding: Vec::new(),
            lines: this.files.iter().map(|file| file.lines).sum(),
            code: this.files.iter().map(|file| file.code).sum(),
        };
        for file in &this.files {
            facts.files.push(Counted { name: file.path.clone(), count: file.lines, is_plain: false });
        }
        for module in &this.modules {
            let at: Vec<&str> =
                std::iter::once(&*this.name).chain(module.path.iter().map(String::as_str)).collect();
            let at = at.join("::");
            module.items.iter().for_each(|item| facts.item(item, &at));
        }
        facts
    }

    fn item(&mut self, item: &Item, at: &str) {
        match item {
            Item::Trait(item) => {
                let methods = item.items.iter().filter(|one| matches!(one, TraitItem::Fn(_))).count();
                let name = format!("{at}::{}", item.ident);
                for one in &item.items {
                    if let TraitItem::Fn(method) = one
                        && let Some(body) = &method.default
                    {
                        self.method(&name, &method.sig, body, method.span());
                    }
                }
                self.traits.push(Counted { name, count: methods, is_plain: false });
            }
            Item::Struct(item) => {
                let Fields::Named(fields) = &item.fields else { return };
                if DATA_PATH.contains(&&*self.name) {
                    let is_plain = fields.named.iter().all(|field| is_plain(&field.ty));
                    let (name, count) = (format!("{at}::{}", item.ident), fields.named.len());
                    self.structs.push(Counted { name, count, is_plain });
                }
            }
            Item::Impl(item) => {
                let name = format!("{at}::{}", name_of(&item.self_ty));
                for one in &item.items {
                    if let ImplItem::Fn(method) = one {
                        self.method(
                            &name,
                            &method.sig,
                            &method.block,
                            method
                                .sig
                                .span()
                                .join(method.block.span())
                                .unwrap_or_else(|| method.block.span()),
                        );
                    }
                }
            }
            _ => {}
        }
    }

    fn method(&mut self, owner: &str, signature: &syn::Signature, body: &Block, span: proc_macro2::Span) {
        if is_forwarding(&signature.ident.to_string(), body) {
            let lines = body.span().end().line + 1 - signature.span().start().line.max(span.start().line);
            self.forwarding.push(Counted {
                name: format!("{owner}::{}", signature.ident),
                count: lines,
                is_plain: false,
            });
        }
    }
}

fn name_of(of: &Type) -> String {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        Type::Reference(reference) => name_of(&reference.elem),
        _ => "?".to_owned(),
    }
}

/// A body of one call of the method of that name, on a field of `self` or on what `self` points to.
fn is_forwarding(name: &str, body: &Block) -> bool {
    let [Stmt::Expr(only, _)] = &body.stmts[..] else { return false };
    match only {
        Expr::MethodCall(call) => call.method == name && is_field(&call.receiver),
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return false };
            let is_same = path.path.segments.last().is_some_and(|last| last.ident == name);
            is_same && path.path.segments.len() > 1 && call.args.first().is_some_and(is_field)
        }
        _ => false,
    }
}

/// `self.a`, `self.a.b`, `**self`, `&mut self.a`, `self.a.as_mut()` and such.
fn is_field(expression: &Expr) -> bool {
    match expression {
        Expr::Field(field) => is_self(&field.base) || is_field(&field.base),
        Expr::Unary(unary) => is_self(&unary.expr) || is_field(&unary.expr),
        Expr::Reference(reference) => is_field(&reference.expr),
        Expr::Paren(paren) => is_field(&paren.expr),
        Expr::MethodCall(call) => call.args.is_empty() && is_field(&call.receiver),
        _ => false,
    }
}

fn is_self(expression: &Expr) -> bool {
    matches!(expression, Expr::Path(path) if path.path.is_ident("self"))
}

/// Numbers, texts, and options and lists of them.
fn is_plain(of: &Type) -> bool {
    const PLAIN: [&str; 17] = [
        "bool", "u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "f32", "f64", "String", "SimTime",
        "Option", "Vec", "Duration", "str",
    ];
    match of {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let inner_is_plain = match &last.arguments {
                syn::PathArguments::AngleBracketed(inner) => inner.args.iter().all(|one| match one {
                    syn::GenericArgument::Type(of) => is_plain(of),
                    _ => true,
                }),
                _ => true,
            };
            PLAIN.iter().any(|name| last.ident == name) && inner_is_plain
        }),
        Type::Array(array) => is_plain(&array.elem),
        Type::Reference(reference) => is_plain(&reference.elem),
        _ => false,
    }
}
