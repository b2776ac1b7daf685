//! The list of congestion controls: one line each, `module: Variant`. A control has the name of its module, with hyphens
//! for underscores.

macro_rules! register {
    ($($module:ident: $variant:ident,)*) => {
        $(mod $module;)*

        /// A congestion control: the value of `congestion` in the `[tcp]` table. The default is the one registered first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Congestion {
            $(#[allow(missing_docs)] $variant,)*
        }

        impl Congestion {
            /// All congestion controls, in the order of registration.
            pub const ALL: &[Congestion] = &[$(Congestion::$variant,)*];

            /// Its description.
            pub const fn control(self) -> &'static $crate::tcp::cc::Control {
                match self {
                    $(Congestion::$variant => &$module::CONTROL,)*
                }
            }

            /// The control called `name`.
            pub fn named(name: &str) -> Option<Congestion> {
                Congestion::ALL.iter().copied().find(|congestion| congestion.control().name == name)
            }
        }

        impl schemars::JsonSchema for Congestion {
            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                "Congestion".into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let controls = Congestion::ALL.iter().map(|congestion| congestion.control());
                lasthop_base::schema::described(controls.map(|control| (control.name, control.summary)))
            }
        }

        impl Default for Congestion {
            fn default() -> Congestion {
                Congestion::ALL[0]
            }
        }

        /// The name in a control's file equals that of its module, and that in scenario files.
        #[test]
        fn controls_are_called_as_their_modules() {
            use serde::Deserialize;
            use serde::de::IntoDeserializer;
            use serde::de::value::{Error, StrDeserializer};

            let modules = [$(stringify!($module),)*];
            for (module, congestion) in modules.iter().zip(Congestion::ALL) {
                let name = congestion.control().name;
                assert_eq!(module.replace('_', "-"), name);
                let text: StrDeserializer<'_, Error> = name.into_deserializer();
                assert_eq!(Congestion::deserialize(text).as_ref(), Ok(congestion));
            }
        }
    };
}
pub(super) use register;
