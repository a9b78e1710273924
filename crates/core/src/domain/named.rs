//! Enums that files, the database and addresses have as words.

/// An enum with the word of each variant, which is also read. The text says which words there are.
#[macro_export]
macro_rules! named {
    ($words:literal $(#[$meta:meta])* pub enum $type:ident {
        $($(#[$about:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$about])* $variant,)+
        }

        impl $type {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];
        }

        $crate::named!($type, $words, $($variant = $word),+);
    };
    ($type:ty, $words:literal, $($variant:ident = $word:literal),+ $(,)?) => {
        impl $type {
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    other => Err(format!(concat!($words, "; found {:?}"), other)),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
