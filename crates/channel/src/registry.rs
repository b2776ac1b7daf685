//! The list of channel models: one line each, `module: Type`. A model has the name of its module, with hyphens for
//! underscores.

macro_rules! register {
    ($($module:ident: $type:ident,)*) => {
        $(
            mod $module;
            pub use $module::$type;
        )*

        /// The loss model of a wireless link. Unless noted otherwise, a channel depends on time only, never on the
        /// traffic: both directions, and runs of different schemes with the same seed, meet the same fades.
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
