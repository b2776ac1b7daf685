use lasthop_base::{Bytes, Streams};

use super::super::tests::with_flow;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
}

/// The server's first packet of RFC 9001, appendix A.3, both ways.
#[test]
fn packets_are_protected_as_in_the_example_of_the_rfc() {
    let header = bytes("c1000000010008f067a5502a4262b50040750001");
    let payload = bytes(concat!(
        "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a12",
        "00130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a00",
        "2b00020304"
    ));
    let expected = bytes(concat!(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780b",
        "b38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19",
        "fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee"
    ));
    let id = bytes("8394c8f03e515708");
    let [server, client] =
        [rustls::Side::Server, rustls::Side::Client].map(|side| INITIAL.keys(&id, side, Version::V1));
    let (seals, opens) = (Packet(server.local.packet), Packet(client.remote.packet));
    let mut packet = [&header[..], &payload, &[0; 16]].concat();
    seals.encrypt(1, &mut packet, header.len());
    Header(server.local.header).encrypt(18, &mut packet);
    assert_eq!(packet, expected);
    Header(client.remote.header).decrypt(18, &mut packet);
    let (read, rest) = packet.split_at(header.len());
    assert_eq!(read, header);
    let mut sealed = BytesMut::from(rest);
    opens.decrypt(1, &header, &mut sealed).expect("it is intact");
    assert_eq!(sealed, payload);
    for damaged in 0..rest.len() {
        let mut sealed = BytesMut::from(rest);
        sealed[damaged] ^= 1;
        assert!(opens.decrypt(1, &header, &mut sealed).is_err());
    }
    assert!(opens.decrypt(1, &header, &mut BytesMut::from(&rest[..15])).is_err());
}

/// Of a short header, five bits are covered, and of a long one, four (section 5.4.1).
#[test]
fn headers_are_covered_by_their_form() {
    let keys = initial_keys(&[7; 8], rustls::Side::Client);
    for (first, covered) in [(0x40, 0x1f), (0xc0, 0x0f)] {
        let changed = (0..64).map(|sample| {
            let mut packet = [&[first; 10][..], &[sample; 30]].concat();
            keys.header.local.encrypt(9, &mut packet);
            packet[0] ^ first
        });
        assert_eq!(changed.fold(0, |all, bits| all | bits), covered);
    }
}

/// The sessions of both ends.
fn sessions(tls: Tls) -> [Box<dyn crypto::Session>; 2] {
    let tls = Arc::new(tls);
    let parameters = TransportParameters::read(Side::Server, &mut &[][..]).expect("none is needed");
    let (client, server): (Arc<dyn crypto::ClientConfig>, Arc<dyn crypto::ServerConfig>) = (tls.clone(), tls);
    let client = client.start_session(VERSION, NAME, &parameters).expect("a client");
    [client, server.start_session(VERSION, &parameters)]
}

/// Takes what both ends have to say until they are silent, by `change`; the bytes of each, or the first error.
fn converse(
    ends: &mut [Box<dyn crypto::Session>; 2],
    mut change: impl FnMut(&mut Vec<u8>),
) -> Result<[usize; 2], TransportError> {
    let (mut said, mut silent) = ([0; 2], 0);
    for end in (0..2).cycle() {
        let mut message = Vec::new();
        let keys = ends[end].write_handshake(&mut message);
        silent = if message.is_empty() && keys.is_none() { silent + 1 } else { 0 };
        if silent == 4 {
            break;
        }
        said[end] += message.len();
        change(&mut message);
        ends[1 - end].read_handshake(&message)?;
    }
    Ok(said)
}

/// The server's messages are as long as the scenario says, and a session that is resumed has no certificate.
#[test]
fn handshakes_have_their_size() {
    for size in [700, 4_000, 60_000] {
        let settings = quic_settings(size, false);
        let mut ends = with_flow(&settings, |flow| sessions(Tls::new(flow, flow.random.clone())));
        let [client, server] = converse(&mut ends, |_| ()).expect("a handshake");
        assert!(ends.iter().all(|end| !end.is_handshaking() && end.early_crypto().is_none()));
        // Without the transport parameters of both, of some 130 bytes.
        assert!((150..250).contains(&client), "{client}");
        assert!((size - 150..size - 120).contains(&server), "{size}: {server}");
    }
    let mut ends =
        with_flow(&quic_settings(4_000, true), |flow| sessions(Tls::new(flow, flow.random.clone())));
    assert!(ends[0].early_crypto().is_some());
    let [client, server] = converse(&mut ends, |_| ()).expect("a handshake");
    // A ticket of the server is among it.
    assert!((250..400).contains(&client) && (200..500).contains(&server), "{client} {server}");
    assert_eq!(ends[0].early_data_accepted(), Some(true));
}

/// One seed, one handshake; another one, another.
#[test]
fn handshakes_repeat() {
    let written = |run| {
        let random = Streams::new(46, run).stream("tls");
        let mut ends =
            with_flow(&quic_settings(4_000, true), |flow| sessions(Tls::new(flow, random.clone())));
        let mut all = Vec::new();
        converse(&mut ends, |message| all.extend_from_slice(message)).expect("a handshake");
        all
    };
    assert_eq!(written(1), written(1));
    assert_ne!(written(1), written(2));
}

/// Whatever a stranger says, a session ends with an error at worst.
#[test]
fn no_message_makes_a_session_panic() {
    let mut random = Streams::new(46, 3).stream("strangers");
    let mut failed = 0;
    for number in 0..200 {
        let settings = quic_settings(1_000, number % 2 == 0);
        let mut ends = with_flow(&settings, |flow| sessions(Tls::new(flow, flow.random.clone())));
        let result = converse(&mut ends, |message| {
            if message.is_empty() || random.bernoulli(0.5) {
                return;
            }
            let place = random.below(message.len() as u64) as usize;
            match random.below(4) {
                0 => message.truncate(place),
                1 => message.extend_from_within(place..),
                2 => message[..4.min(place)].fill_with(|| random.below(256) as u8),
                _ => message[place] ^= 1 << random.below(8),
            }
        });
        failed += u32::from(result.is_err());
    }
    assert!((80..200).contains(&failed), "{failed}");
}

fn quic_settings(handshake: usize, zero_rtt: bool) -> lasthop_proto::quic::Settings {
    lasthop_proto::quic::Settings { handshake: Bytes(handshake as u64), zero_rtt, ..Default::default() }
}
