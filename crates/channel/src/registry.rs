//! The list of channel models: one line each, `module: Type`. A model has the name of its module, with hyphens for
//! underscores.

macro_rules! register {
    ($($module:ident: $type:ident,)*) => {
        $(
            mod $module;
            pub use $module::$type;
        )*

        /// A channel model with its parameters.
        ///
        /// In a scenario file the last part of the table's name is the model:
        ///
        /// ```toml
        /// [radio.channel.two-state]
        /// good = "10 s"
        /// bad = "4 s"
        /// ```
        ///
        /// A model without parameters is written as a string: `channel = "perfect"`.
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[schemars(rename = "Channel")]
        pub enum Model {
            /// No errors. The default.
            #[default]
            Perfect,
            $(#[allow(missing_docs)] $type($type),)*
        }

        impl Model {
            fn as_model(&self) -> &dyn $crate::ChannelModel {
                match self {
                    Model::Perfect => &$crate::perfect::Perfect,
                    $(Model::$type(model) => model,)*
                }
            }

            fn as_model_mut(&mut self) -> Option<&mut dyn $crate::ChannelModel> {
                match self {
                    Model::Perfect => None,
                    $(Model::$type(model) => Some(model),)*
                }
            }

            /// The modules of the registered models, each with [examples](ChannelModel::examples) of its table.
            pub(crate) const EXAMPLES: &[(&str, fn() -> &'static [&'static str])] =
                &[$((stringify!($module), <$type as $crate::ChannelModel>::examples),)*];
        }
    };
}
pub(super) use register;
