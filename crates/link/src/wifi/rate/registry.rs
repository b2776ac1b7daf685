//! The list of rate controls: one line each, `module: Variant` or, with parameters, `module: Variant(Params)`. A control has the
//! name of its module, with hyphens for underscores. Its module has a `SUMMARY`, and a type that implements
//! [`Parameters`](super::Parameters): the one with the name of the variant, or its `Params`.

macro_rules! register {
    ($($module:ident: $variant:ident $(($params:ident))?,)*) => {
        $(mod $module;)*
        $($(pub use $module::$params;)?)*

        /// A rate control with its parameters, as scenario files state it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum RateSelection {
            $(#[allow(missing_docs)] $variant $(($params))?,)*
        }

        impl RateSelection {
            fn params(&self) -> &dyn Parameters {
                match self {
                    $(RateSelection::$variant $({ 0: params @ $params { .. } })? => {
                        registry::select!(&$module::$variant $(, { let params: &$params = params; params })?)
                    })*
                }
            }

            /// All rate controls in the order of registration, those with parameters by examples, for random tests.
            pub fn examples() -> Vec<RateSelection> {
                let mut all = Vec::new();
                $(all.extend(registry::select!(
                    [RateSelection::$variant]
                    $(, $params::EXAMPLES.iter().map(|params| RateSelection::$variant(*params)))?
                ));)*
                all
            }
        }

        impl schemars::JsonSchema for RateSelection {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "RateSelection".into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let forms: Vec<schemars::Schema> = vec![$({
                    let name = stringify!($module).replace('_', "-");
                    let summary = $module::SUMMARY;
                    registry::select!(
                        schemars::json_schema!({"type": "string", "const": name, "description": summary})
                        $(, schemars::json_schema!({
                            "type": "object",
                            "description": summary,
                            "properties": {(name.as_str()): _generator.subschema_for::<$params>()},
                            "required": [name],
                            "additionalProperties": false
                        }))?
                    )
                },)*];
                let description = "A rate control with its parameters, as scenario files state it.";
                schemars::json_schema!({"description": description, "oneOf": forms})
            }
        }
    };
}
pub(super) use register;

/// The second of two, or the first if there is no second.
macro_rules! select {
    ($without:expr) => {
        $without
    };
    ($without:expr, $with:expr) => {
        $with
    };
}
pub(super) use select;
