//! The commands that set up a gateway at each end of the wireless link.

/// The commands for a scheme that gateways have, with further lines of their file after `[tunnel]`, and further commands.
macro_rules! gateways_at_both_ends {
    ($scheme:literal, [$($line:literal),* $(,)?], [$($command:literal),* $(,)?]) => {
        &[
            "cat > gateway.toml <<'END'",
            "[gateway]",
            concat!("scheme = \"", $scheme, "\""),
            "unhelped = \"10%\"",
            "",
            "[tunnel]",
            "key = \"/etc/lasthop/tunnel.key\"",
            "peer = \"PEER:9332\"",
            "routes = [\"NETWORK\"]",
            $($line,)*
            "END",
            "# at one end, and then copied to the other one",
            "lasthop gateway key > /etc/lasthop/tunnel.key",
            "# at both ends",
            "lasthop gateway check gateway.toml",
            "lasthop gateway run gateway.toml",
            $($command,)*
        ]
    };
}

pub(super) use gateways_at_both_ends;
