//! The list of ARQ protocols: one line each, `module: Type`, with its description. A protocol has the name of its type in
//! scenario files, in lower case with hyphens; its parameters are the `Params` of the module.

macro_rules! register {
    ($($(#[$doc:meta])* $module:ident: $type:ident,)*) => {
        $(
            pub mod $module;
            pub use $module::$type;
        )*

        /// Link-layer retransmission (ARQ, local recovery), in both directions. Every scheme runs over it, except
        /// `basic` with `arq = false`; some schemes require it. The output names the schemes that run without it.
        /// The scheme `arq` adds an ARQ to links without one.
        ///
        /// ```toml
        /// [radio.arq.stop-and-wait]
        /// retransmissions = 13
        /// backoff.uniform = "700 ms"
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[schemars(rename = "LinkArq")]
        pub enum Config {
            /// No ARQ: each unit is sent once. The default, and the papers' baseline ("basic" TCP).
            #[default]
            None,
            $($(#[$doc])* $type($module::Params),)*
        }

        impl Config {
            fn protocol(&self) -> Option<&dyn $crate::arq::Protocol> {
                match self {
                    Config::None => None,
                    $(Config::$type(params) => Some(params),)*
                }
            }
        }
    };
}
pub(super) use register;
