//! Rule set until the networks bring theirs.

macro_rules! rules {
    ($($name:ident = $number:literal),* $(,)?) => {
        /// A consensus rule (RSKIP) that execution asks about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Rule { $($name),* }

        impl Rule {
            /// Every rule here.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            /// Its RSKIP number.
            pub const fn number(self) -> u16 {
                match self { $(Rule::$name => $number),* }
            }

            /// The rule of a configuration name.
            pub fn from_name(name: &str) -> Option<Self> {
                let number = name.strip_prefix("rskip")?.parse::<u16>().ok()?;
                Self::ALL.iter().copied().find(|rule| rule.number() == number)
            }
        }
    };
}

rules! {
    Rskip90 = 90, Rskip91 = 91, Rskip106 = 106, Rskip119 = 119, Rskip120 = 120, Rskip125 = 125, Rskip126 = 126,
    Rskip137 = 137, Rskip140 = 140, Rskip150 = 150, Rskip151 = 151, Rskip152 = 152, Rskip153 = 153,
    Rskip169 = 169, Rskip171 = 171, Rskip174 = 174, Rskip191 = 191, Rskip197 = 197, Rskip203 = 203, Rskip398 = 398,
    Rskip400 = 400, Rskip412 = 412, Rskip438 = 438, Rskip445 = 445, Rskip446 = 446, Rskip453 = 453, Rskip516 = 516,
    Rskip544 = 544,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(u64);

impl RuleSet {
    /// No rule.
    pub const NONE: Self = Self(0);
    /// Whether the rule is in the set.
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u64) != 0
    }
    /// With one more rule.
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | (1 << rule as u64))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        rules.into_iter().fold(Self::NONE, Self::with)
    }
}
