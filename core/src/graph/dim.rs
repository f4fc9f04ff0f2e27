//! Symbolic integers: the dimensions of a shape, and the elements of tensors that hold shapes.
//!
//! A dimension is an integer or a polynomial with integer coefficients over *atoms*: the named
//! dimensions of the model, unknowns, and quotients, minima and maxima that do not simplify. Two
//! equal polynomials are equal as data, so `batch*seq + seq` recognises `seq*(batch + 1)`.

use std::collections::BTreeMap;
use std::sync::Arc;

/// An integer, known or symbolic.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    Known(i64),
    /// At least one term that is not constant.
    Sum(Arc<Terms>),
}

/// Monomial (sorted atoms; empty for the constant) to its coefficient, never zero.
type Terms = BTreeMap<Vec<Atom>, i64>;

/// What a polynomial is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A dimension named by the model (`batch`), or an unknown made by inference (`?3`).
    Symbol(Arc<str>),
    /// Quotient rounded towards negative infinity.
    FloorDiv(Dim, Dim),
    Min(Dim, Dim),
    Max(Dim, Dim),
}

impl Dim {
    pub fn symbol(name: &str) -> Self {
        Self::atom(Atom::Symbol(name.into()))
    }

    fn atom(atom: Atom) -> Self {
        Dim::Sum(Arc::new(BTreeMap::from([(vec![atom], 1)])))
    }

    pub fn known(&self) -> Option<i64> {
        match self {
            Dim::Known(n) => Some(*n),
            Dim::Sum(_) => None,
        }
    }

    /// Whether this cannot be negative as long as every symbol stands for a dimension.
    pub fn is_nonnegative(&self) -> bool {
        match self {
            Dim::Known(n) => *n >= 0,
            Dim::Sum(terms) => {
                terms.iter().all(|(atoms, &c)| c >= 0 && atoms.iter().all(Atom::is_nonnegative))
            }
        }
    }

    /// The name, when this is one plain symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        let Dim::Sum(terms) = self else { return None };
        match terms.iter().next() {
            Some((atoms, 1)) if terms.len() == 1 => match atoms.as_slice() {
                [Atom::Symbol(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    fn terms(&self) -> Terms {
        match self {
            Dim::Known(0) => Terms::new(),
            Dim::Known(n) => Terms::from([(Vec::new(), *n)]),
            Dim::Sum(terms) => (**terms).clone(),
        }
    }

    fn from_terms(mut terms: Terms) -> Self {
        terms.retain(|_, c| *c != 0);
        match terms.iter().next() {
            None => Dim::Known(0),
            Some((atoms, &c)) if terms.len() == 1 && atoms.is_empty() => Dim::Known(c),
            _ => Dim::Sum(Arc::new(terms)),
        }
    }

    /// Sum; an overflow of the coefficients saturates, which no real shape reaches.
    pub fn add(&self, other: &Dim) -> Dim {
        if let (Dim::Known(a), Dim::Known(b)) = (self, other) {
            return Dim::Known(a.saturating_add(*b));
        }
        let mut terms = self.terms();
        for (atoms, c) in other.terms() {
            let sum = terms.entry(atoms).or_insert(0);
            *sum = sum.saturating_add(c);
        }
        Self::from_terms(terms)
    }

    pub fn neg(&self) -> Dim {
        self.mul(&Dim::Known(-1))
    }

    pub fn sub(&self, other: &Dim) -> Dim {
        self.add(&other.neg())
    }

    pub fn mul(&self, other: &Dim) -> Dim {
        if let (Dim::Known(a), Dim::Known(b)) = (self, other) {
            return Dim::Known(a.saturating_mul(*b));
        }
        let mut terms = Terms::new();
        for (left, a) in self.terms() {
            for (right, b) in other.terms() {
                let mut atoms = left.clone();
                atoms.extend(right);
                atoms.sort();
                let sum = terms.entry(atoms).or_insert(0);
                *sum = sum.saturating_add(a.saturating_mul(b));
            }
        }
        Self::from_terms(terms)
    }

    /// Quotient rounded down. A zero divisor gives an expression that never becomes known.
    pub fn floor_div(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) if *b != 0 => {
                return Dim::Known(
                    a.wrapping_div_euclid(*b) - if *b < 0 && a.wrapping_rem_euclid(*b) != 0 { 1 } else { 0 },
                );
            }
            (_, Dim::Known(1)) => return self.clone(),
            _ if self == other => return Dim::Known(1),
            _ => {}
        }
        self.exact_div(other).unwrap_or_else(|| Self::atom(Atom::FloorDiv(self.clone(), other.clone())))
    }

    /// Quotient rounded up.
    pub fn ceil_div(&self, other: &Dim) -> Dim {
        self.neg().floor_div(other).neg()
    }

    /// The quotient when the divisor is one monomial that divides every term.
    pub fn exact_div(&self, other: &Dim) -> Option<Dim> {
        let divisor = other.terms();
        let (atoms, &coefficient) = divisor.iter().next()?;
        if divisor.len() != 1 {
            return (self == other).then_some(Dim::Known(1));
        }
        let mut quotient = Terms::new();
        for (term, c) in self.terms() {
            if c.checked_rem(coefficient)? != 0 {
                return None;
            }
            let mut rest = term;
            for atom in atoms {
                let at = rest.iter().position(|a| a == atom)?;
                rest.remove(at);
            }
            quotient.insert(rest, c / coefficient);
        }
        Some(Self::from_terms(quotient))
    }

    pub fn min_of(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(*a.min(b)),
            _ if self == other => self.clone(),
            _ => Self::atom(Atom::Min(self.clone(), other.clone())),
        }
    }

    /// Whether this is the minimum of `other` and a number above 1.
    pub fn is_limited(&self, other: &Dim) -> bool {
        let Dim::Sum(terms) = self else { return false };
        let mut terms = terms.iter();
        let limit = |d: &Dim| d.known().is_some_and(|n| n > 1);
        match (terms.next(), terms.next()) {
            (Some((atoms, 1)), None) => match &atoms[..] {
                [Atom::Min(a, b)] => (a == other && limit(b)) || (b == other && limit(a)),
                _ => false,
            },
            _ => false,
        }
    }

    pub fn max_of(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(*a.max(b)),
            _ if self == other => self.clone(),
            _ => Self::atom(Atom::Max(self.clone(), other.clone())),
        }
    }

    /// This expression with its symbols replaced where `value` knows them.
    pub fn substitute(&self, value: &dyn Fn(&str) -> Option<i64>) -> Dim {
        let Dim::Sum(terms) = self else { return self.clone() };
        let mut sum = Dim::Known(0);
        for (atoms, c) in terms.iter() {
            let mut product = Dim::Known(*c);
            for atom in atoms {
                let factor = match atom {
                    Atom::Symbol(name) => match value(name) {
                        Some(n) => Dim::Known(n),
                        None => Self::atom(atom.clone()),
                    },
                    Atom::FloorDiv(a, b) => a.substitute(value).floor_div(&b.substitute(value)),
                    Atom::Min(a, b) => a.substitute(value).min_of(&b.substitute(value)),
                    Atom::Max(a, b) => a.substitute(value).max_of(&b.substitute(value)),
                };
                product = product.mul(&factor);
            }
            sum = sum.add(&product);
        }
        sum
    }
}

impl Atom {
    fn is_nonnegative(&self) -> bool {
        match self {
            Atom::Symbol(_) => true,
            Atom::FloorDiv(a, b) | Atom::Min(a, b) => a.is_nonnegative() && b.is_nonnegative(),
            Atom::Max(a, b) => a.is_nonnegative() || b.is_nonnegative(),
        }
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Dim::Known(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Dim {
    fn from(n: i64) -> Self {
        Dim::Known(n)
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Dim::Sum(terms) = self else {
            let Dim::Known(n) = self else { return Ok(()) };
            return write!(f, "{n}");
        };
        // The constant comes last, as people write it.
        let constant = terms.get(&Vec::new()).map(|c| (&[][..], *c));
        let others =
            terms.iter().filter(|(atoms, _)| !atoms.is_empty()).map(|(atoms, c)| (atoms.as_slice(), *c));
        for (i, (atoms, c)) in others.chain(constant).enumerate() {
            let sign = match (i, c < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            };
            f.write_str(sign)?;
            let c = c.unsigned_abs();
            if c != 1 || atoms.is_empty() {
                write!(f, "{c}")?;
            }
            for (j, atom) in atoms.iter().enumerate() {
                if j > 0 || c != 1 {
                    f.write_str("*")?;
                }
                write!(f, "{atom}")?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Atom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::FloorDiv(a, b) => write!(f, "floor(({a})/({b}))"),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
        }
    }
}

impl std::fmt::Debug for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(name: &str) -> Dim {
        Dim::symbol(name)
    }

    #[test]
    fn equal_polynomials_are_equal_data() {
        let (b, n) = (s("batch"), s("n"));
        assert_eq!(b.mul(&n).add(&n), n.mul(&b.add(&Dim::Known(1))));
        assert_eq!(b.sub(&b), Dim::Known(0));
        assert_eq!(
            b.mul(&n).mul(&Dim::Known(12)).exact_div(&n.mul(&Dim::Known(4))),
            Some(b.mul(&Dim::Known(3)))
        );
        assert_eq!(b.exact_div(&n), None);
        assert_eq!(b.exact_div(&Dim::Known(0)), None);
    }

    #[test]
    fn division_rounds_as_stated() {
        for (a, b, floor, ceil) in
            [(7, 2, 3, 4), (-7, 2, -4, -3), (7, -2, -4, -3), (-7, -2, 3, 4), (6, 3, 2, 2), (0, 5, 0, 0)]
        {
            assert_eq!(Dim::Known(a).floor_div(&Dim::Known(b)), Dim::Known(floor), "{a}/{b}");
            assert_eq!(Dim::Known(a).ceil_div(&Dim::Known(b)), Dim::Known(ceil), "{a}/{b}");
        }
        assert_eq!(Dim::Known(1).floor_div(&Dim::Known(0)).known(), None);
    }

    #[test]
    fn substitution_reaches_into_quotients() {
        let h = s("h").add(&Dim::Known(1)).floor_div(&Dim::Known(2));
        assert_eq!(h.to_string(), "floor((h + 1)/(2))");
        assert_eq!(h.substitute(&|_| Some(224)), Dim::Known(112));
        assert_eq!(h.substitute(&|_| None), h);
    }

    #[test]
    fn prints_as_people_write() {
        let d = s("a").mul(&s("b")).mul(&Dim::Known(2)).sub(&s("a")).add(&Dim::Known(3));
        assert_eq!(d.to_string(), "-a + 2*a*b + 3");
        assert_eq!(s("batch").as_symbol(), Some("batch"));
        assert_eq!(d.as_symbol(), None);
    }
}
