//! The list of schemes: one line each, `module: Type`. A scheme has the name of its module, with hyphens for
//! underscores.

macro_rules! register {
    ($($module:ident: $type:ident,)*) => {
        $(mod $module;)*

        /// The parameters of each scheme, as its `[scheme.NAME]` table has them.
        pub mod parameters {
            $(pub use super::$module::$type;)*
        }

        /// Every scheme with its parameters: the schema of the `[scheme]` table.
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
        pub struct Schemes {
            $(#[allow(missing_docs)] pub $module: $module::$type,)*
            /// Schemes that are not registered, such as those written in Python. They have no tables.
            #[serde(skip)]
            pub external: $crate::scheme::ExternalSchemes,
        }

        impl Schemes {
            /// All schemes, in the order of registration; external ones last.
            pub fn all(&self) -> impl Iterator<Item = &dyn $crate::scheme::Scheme> {
                let registered = [$(&self.$module as &dyn $crate::scheme::Scheme,)*];
                registered.into_iter().chain(self.external.all())
            }

            /// The scheme called `name`.
            pub fn get(&self, name: &str) -> Option<&dyn $crate::scheme::Scheme> {
                self.all().find(|scheme| scheme.name() == name)
            }
        }

        /// The name in a scheme's file equals that of its table and its module.
        #[test]
        fn schemes_are_called_as_their_modules() {
            let modules = [$(stringify!($module),)*];
            for (module, scheme) in modules.iter().zip(Schemes::default().all()) {
                assert_eq!(module.replace('_', "-"), scheme.name());
            }
        }
    };
}
pub(super) use register;
