//! The list of queue disciplines: one line each, `module: Type`. A discipline has the name of its module, with hyphens for
//! underscores; its parameters are the `Params` of the module.

macro_rules! register {
    ($($module:ident: $type:ident,)*) => {
        $(
            pub mod $module;
            pub use $module::$type;
        )*

        /// A queue discipline other than drop-tail, with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Management {
            $(#[allow(missing_docs)] $type($module::Params),)*
        }

        impl Management {
            /// The modules of all disciplines, each with default parameters.
            const ALL: &[(&str, fn() -> Management)] =
                &[$((stringify!($module), || Management::$type(Default::default())),)*];

            fn params(&self) -> &dyn $crate::queue::Parameters {
                match self {
                    $(Management::$type(params) => params,)*
                }
            }
        }

        /// Any of the tables that state a discipline.
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        struct Table {
            $($module: Option<$module::Params>,)*
        }

        impl Table {
            /// The disciplines stated.
            fn stated(self) -> impl Iterator<Item = Management> {
                [$(self.$module.map(Management::$type),)*].into_iter().flatten()
            }
        }
    };
}
pub(super) use register;
