//! Keys among whose tables one is chosen.

/// Whether the keys lead to a choice between several alternatives, each with its own table. An override that
/// names another alternative replaces the one in the file.
pub(super) fn is_choice(keys: &[&str]) -> bool {
    let of_link = match keys {
        ["topology"]
        | ["traffic", _, "law"]
        | ["cell", "phy" | "channel"]
        | ["cell" | "wifi", "channel", "semi-markov", "good" | "bad"]
        | ["wifi", "rate" | "channel" | "queue" | "station_queue"]
        | ["link", _, "station", "rate"]
        | ["wired", "queue" | "rate" | "delay"] => {
            return true;
        }
        ["application", _, "request" | "response" | "think"] | ["mobility", _, "moves"] => return true,
        ["radio", "uplink", keys @ ..] | ["link", _, "uplink", keys @ ..] => keys,
        ["radio", keys @ ..] | ["link", _, keys @ ..] => keys,
        _ => return false,
    };
    matches!(
        of_link,
        ["queue" | "rate" | "delay" | "channel"]
            | ["channel", "semi-markov", "good" | "bad"]
            | ["arq"]
            | ["arq", "stop-and-wait", "backoff"]
    )
}
