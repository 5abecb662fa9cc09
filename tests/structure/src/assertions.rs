//! Which functions state what must hold.
//!
//! Looked at are the methods that take `&mut self`, in the modules of [`MODULES`]. One needs an assertion
//! with a message if it changes something of `self` or of an argument by itself: it assigns to a place, or
//! calls a method of a collection that changes it. What only calls other methods needs none, nor does what
//! only resets places to constants, nor a setter: at most three lines without an index.

use crate::modules::Crate;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, FnArg, ImplItem, Item, Token, Type};

/// Modules whose functions are looked at, with all below them.
const MODULES: [&str; 7] = [
    "cache::engine::directory",
    "ftl::hsbm_gcl",
    "ftl::journal",
    "ftl::page_log",
    "ftl::page_map",
    "ftl::parts",
    "ftl::sbm_gcl",
];
/// Lines of the body of a setter.
const SETTER_LINES: usize = 3;
/// Methods of collections and cells that change what they are called on.
const CHANGING: [&str; 24] = [
    "append",
    "clear",
    "copy_from_slice",
    "drain",
    "entry",
    "extend",
    "extend_from_slice",
    "fill",
    "get_mut",
    "insert",
    "iter_mut",
    "pop",
    "pop_back",
    "pop_front",
    "push",
    "push_back",
    "push_front",
    "remove",
    "replace",
    "resize",
    "retain",
    "swap",
    "swap_remove",
    "truncate",
];

/// What was found in a crate.
#[derive(Default)]
pub struct Assertions {
    /// Assertions with a message.
    pub count: usize,
    /// Lines of code of the modules, those of the items alone.
    pub lines: usize,
    /// Functions that need an assertion and have one.
    pub stated: usize,
    /// Functions that need an assertion and have none.
    pub silent: Vec<String>,
}

impl Assertions {
    /// Of a crate.
    pub fn of(this: &Crate) -> Self {
        let mut found = Self::default();
        for module in &this.modules {
            let path = std::iter::once(&*this.name).chain(module.path.iter().map(String::as_str));
            let at = path.collect::<Vec<_>>().join("::");
            if MODULES.iter().any(|name| at == *name || at.starts_with(&format!("{name}::"))) {
                module.items.iter().for_each(|item| found.item(item, &at));
            }
        }
        found
    }

    fn item(&mut self, item: &Item, at: &str) {
        self.lines += lines_of(item.span());
        let mut all = Seen::default();
        all.visit_item(item);
        self.count += all.assertions;
        let Item::Impl(item) = item else { return };
        for one in &item.items {
            let ImplItem::Fn(method) = one else { continue };
            let Some(FnArg::Receiver(receiver)) = method.sig.inputs.first() else { continue };
            if receiver.mutability.is_none() || !is_reference(&receiver.ty) {
                continue;
            }
            let mut seen = Seen::default();
            seen.visit_block(&method.block);
            if !seen.changes || is_setter(&method.block, &seen) {
                continue;
            }
            if seen.assertions > 0 {
                self.stated += 1;
            } else {
                let owner = match &*item.self_ty {
                    Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
                    _ => None,
                };
                self.silent.push(format!("{at}::{}::{}", owner.unwrap_or_default(), method.sig.ident));
            }
        }
    }
}

fn lines_of(span: proc_macro2::Span) -> usize {
    span.end().line + 1 - span.start().line
}

fn is_reference(of: &Type) -> bool {
    matches!(of, Type::Reference(_))
}

fn is_setter(body: &Block, seen: &Seen) -> bool {
    lines_of(body.span()).saturating_sub(2) <= SETTER_LINES && !seen.indexes
}

/// What a body does.
#[derive(Default)]
struct Seen {
    assertions: usize,
    indexes: bool,
    changes: bool,
    /// Names bound with `mut` so far.
    variables: Vec<String>,
}

impl<'ast> Visit<'ast> for Seen {
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let Some(name) = called.path.segments.last().map(|last| last.ident.to_string()) else { return };
        let compared = match name.trim_start_matches("debug_") {
            "assert" => 1,
            "assert_eq" | "assert_ne" => 2,
            _ => return,
        };
        let arguments = called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        self.assertions += usize::from(arguments.is_ok_and(|arguments| arguments.len() > compared));
    }

    fn visit_expr_index(&mut self, index: &'ast syn::ExprIndex) {
        self.indexes = true;
        visit::visit_expr_index(self, index);
    }

    fn visit_pat_ident(&mut self, name: &'ast syn::PatIdent) {
        if name.mutability.is_some() {
            self.variables.push(name.ident.to_string());
        }
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        self.changes |= self.is_place(&assign.left) && !is_constant(&assign.right);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let is_assignment = matches!(
            binary.op,
            BinOp::AddAssign(_)
                | BinOp::SubAssign(_)
                | BinOp::MulAssign(_)
                | BinOp::DivAssign(_)
                | BinOp::RemAssign(_)
                | BinOp::BitXorAssign(_)
                | BinOp::BitAndAssign(_)
                | BinOp::BitOrAssign(_)
                | BinOp::ShlAssign(_)
                | BinOp::ShrAssign(_)
        );
        self.changes |= is_assignment && self.is_place(&binary.left);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.changes |= self.is_place(&call.receiver) && CHANGING.iter().any(|name| call.method == name);
        visit::visit_expr_method_call(self, call);
    }
}

impl Seen {
    /// A field, an element, or what a reference points to; not one of a variable of the function.
    fn is_place(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Field(_) | Expr::Index(_) | Expr::Unary(_) => {
                root_of(expression).is_none_or(|root| !self.variables.contains(&root))
            }
            Expr::Paren(paren) => self.is_place(&paren.expr),
            Expr::Tuple(tuple) => tuple.elems.iter().any(|one| self.is_place(one)),
            _ => false,
        }
    }
}

/// A number, `true` or `false`, or a constant by its name.
fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(_) => true,
        Expr::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident.to_string().chars().all(|letter| !letter.is_ascii_lowercase())),
        _ => false,
    }
}

/// The name from which a path of fields, elements and calls begins.
fn root_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Field(field) => root_of(&field.base),
        Expr::Index(index) => root_of(&index.expr),
        Expr::Unary(unary) => root_of(&unary.expr),
        Expr::Paren(paren) => root_of(&paren.expr),
        Expr::MethodCall(call) => root_of(&call.receiver),
        _ => None,
    }
}
