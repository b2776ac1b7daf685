//! Contents of pcapng files as `tshark` shows them, where it is installed.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use lasthop_base::Time;
use lasthop_capture::CapturePoint;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Body, DropReason, Dscp, Ecn, Effect, LinkEvent, LinkOutcome, Out, Packet, Port, Signal};
use lasthop_testing::schemes::agent;

use crate::pcapng::reader::{File, text};
use crate::pcapng::run::{
    ARRIVING, LEAVING, RECEIVER, Run, SENDER, answer, at_sender, carrying, data, datagram, notice, sack,
};

/// The output of `tshark` for the packets that match `filter`: the values of `fields`, one line per packet.
/// `None` if `tshark` is not installed.
fn tshark(name: &str, bytes: &[u8], filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    command.args(["-o", "udp.check_checksum:TRUE"]);
    command.arg("-r").arg(&path).args(["-Y", filter, "-T", "fields"]);
    let output = match command.args(fields.iter().flat_map(|field| ["-e", field])).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("tshark is not installed: not tried");
            return None;
        }
        Err(error) => panic!("tshark: {error}"),
    };
    let complaints = text(&output.stderr);
    let complaints: Vec<_> = complaints.lines().filter(|line| !line.contains("as user \"root\"")).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

/// A handshake, five segments with the second one lost, a lost acknowledgement, notices with one lost, and a
/// fast retransmission.
fn eventful(losses: bool) -> Vec<u8> {
    let mut run = Run::new(CapturePoint { losses, ..at_sender() });
    run.shake_hands();
    for n in 1..=5 {
        run.forth(data(1000 * n));
    }
    run.lose(carrying(data(2000), SENDER, RECEIVER), DropReason::Corrupted);
    run.back(answer(2000)).back(sack(2000, &[(3000, 4000)]));
    run.lose(carrying(answer(2000), RECEIVER, SENDER), DropReason::QueueFull);
    run.cross(ARRIVING, notice(41, 0, 2000)).cross(ARRIVING, notice(4, 0, 2000));
    run.lose(notice(4, 0, 2000), DropReason::AttemptsExhausted);
    run.back(sack(2000, &[(3000, 5000)])).back(sack(2000, &[(3000, 6000)]));
    run.forth(data(2000)).back(answer(6000));
    run.bytes()
}

#[test]
fn wireshark_reports_no_errors() {
    let bytes = eventful(true);
    let number = ["frame.number"];
    let faults = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 \
                  || icmp.checksum.status == 0";
    let Some(faulty) = tshark("faults.pcapng", &bytes, faults, &number) else { return };
    assert_eq!(faulty, [""; 0]);
    let sound = tshark("sound.pcapng", &bytes, "ip.checksum.status == 1", &number).unwrap();
    assert_eq!(sound.len(), File::parse(&bytes).records.len());
    let bare = tshark("bare.pcapng", &bytes, "tcp.len == 0 && tcp.checksum.status == 1", &number).unwrap();
    assert_eq!(bare.len(), 8, "those without a payload, which is not captured, can be verified");
}

/// Notices have an ICMP type of their own, not one shown as "obsolete or malformed".
#[test]
fn wireshark_names_a_notice() {
    for scheme in ["ebsn", "lhack"] {
        let mut agent = agent(&Schemes::default(), scheme);
        let mut out = Out::default();
        let packet = carrying(data(1000), SENDER, RECEIVER);
        for outcome in [LinkOutcome::AttemptFailed, LinkOutcome::Discarded] {
            let event = LinkEvent { outcome, packet, attempt: 1 };
            agent.on_signal(Time::ZERO, &Signal::Link(event), &mut out);
        }
        agent.receive(Time::ZERO, &packet, Port::WIRED, &mut out);
        let mut run = Run::new(at_sender());
        run.forth(data(1000));
        let mut notices = 0;
        while let Some((_, effect)) = out.take() {
            if let Effect::Send(_, packet) = effect
                && matches!(packet.body, Body::Notice(_))
            {
                run.cross(ARRIVING, packet);
                notices += 1;
            }
        }
        assert!(notices > 0, "{scheme}");
        let bytes = run.bytes();
        for record in &File::parse(&bytes).records[1..] {
            assert_eq!(record.icmp().0.to_bytes()[0], 41, "{scheme}");
        }
        let name = format!("notices-{scheme}.pcapng");
        let Some(shown) = tshark(&name, &bytes, "icmp", &["_ws.col.Info"]) else { return };
        assert_eq!(shown, vec!["Experimental mobility protocols"; notices], "{scheme}");
    }
}

#[test]
fn wireshark_shows_losses_with_their_instants_and_reasons() {
    let fields = ["frame.time_epoch", "frame.interface_name", "frame.comment"];
    let Some(losses) = tshark("losses.pcapng", &eventful(true), "frame.interface_name == losses", &fields)
    else {
        return;
    };
    let expected = [
        "0.008000000\tlosses\tTCP segment seq=2000 len=1000 lost: corrupted on the air",
        "0.010000000\tlosses\tTCP acknowledgement ack=2000 lost: queue full",
        "0.012000000\tlosses\tnotice type=4 code=0 about TCP segment seq=2000 lost: \
         link attempts exhausted",
    ];
    assert_eq!(losses, expected);
}

#[test]
fn wireshark_flags_retransmissions_and_duplicates_only() {
    for (name, losses) in [("with.pcapng", true), ("without.pcapng", false)] {
        let bytes = eventful(losses);
        let times = |filter| tshark(name, &bytes, filter, &["frame.time_epoch"]);
        let Some(retransmitted) = times("tcp.analysis.retransmission") else { return };
        assert_eq!(retransmitted, ["0.014000000"]);
        let duplicates = ["0.009000000", "0.012000000", "0.013000000"];
        assert_eq!(times("tcp.analysis.duplicate_ack").unwrap(), duplicates);
        assert_eq!(times("tcp.analysis.flags").unwrap().len(), 4);
    }
}

#[test]
fn wireshark_follows_a_one_way_flow_without_a_handshake() {
    let mut run = Run::new(at_sender());
    for seq in [1000, 2000, 3000, 2000] {
        run.forth(Segment { seq: SeqNum(seq), len: 1000, ..Segment::default() });
    }
    run.back(Segment { wnd: 4000, ..answer(4000) });
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.window_size"];
    let Some(flagged) = tshark("one_way.pcapng", &bytes, "tcp.analysis.flags", &fields) else { return };
    assert_eq!(flagged, ["4\t65535"]);
    let answers = tshark("one_way.pcapng", &bytes, "tcp.srcport == 5004", &fields).unwrap();
    assert_eq!(answers, ["5\t4000"]);
}

#[test]
fn wireshark_reads_background_datagrams() {
    let mut run = Run::new(at_sender());
    run.shake_hands().cross(LEAVING, datagram(0, 1000)).cross(LEAVING, datagram(1, 28)).forth(data(1000));
    let bytes = run.bytes();
    let fields = ["frame.number", "udp.srcport", "udp.dstport", "udp.length"];
    let Some(found) = tshark("udp.pcapng", &bytes, "udp", &fields) else { return };
    assert_eq!(found, ["4\t49156\t5005\t980", "5\t49156\t5005\t8"]);
    let number = ["frame.number"];
    let sound = tshark("udp.pcapng", &bytes, "udp.checksum.status == 1", &number).unwrap();
    assert_eq!(sound, ["5"], "the one without a payload, which is not captured, can be verified");
    let faults = "_ws.malformed || udp.checksum.status == 0 || tcp.analysis.flags";
    assert_eq!(tshark("udp.pcapng", &bytes, faults, &number).unwrap(), [""; 0]);
}

/// An RST of the source after a rejected segment, and one of the destination: Wireshark shows both as resets,
/// and a lost RST is described as such.
#[test]
fn wireshark_shows_resets() {
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000));
    let rst = Segment { seq: SeqNum(2000), flags: Flags::RST, ..Segment::default() };
    run.forth(rst).lose(carrying(rst, SENDER, RECEIVER), DropReason::Corrupted);
    run.back(Segment { flags: Flags::RST | Flags::ACK, ..answer(1000) });
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "frame.comment"];
    let filter = "tcp.flags.reset == 1 && frame.interface_name == sender";
    let Some(found) = tshark("resets.pcapng", &bytes, filter, &fields) else { return };
    assert_eq!(found, ["5\t0x0004\t2000\t0\t", "7\t0x0014\t5000\t1000\t"]);
    let lost = tshark("resets.pcapng", &bytes, "frame.interface_name == losses", &["frame.comment"]);
    assert_eq!(lost.unwrap(), ["TCP reset seq=2000 lost: corrupted on the air"]);
    let faults = "_ws.malformed || tcp.checksum.status == 0 || tcp.analysis.flags";
    assert_eq!(tshark("resets.pcapng", &bytes, faults, &["frame.number"]).unwrap(), [""; 0]);
}

#[test]
fn wireshark_shows_code_points() {
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000)).back(answer(2000));
    let marked = carrying(data(2000), SENDER, RECEIVER);
    run.cross(LEAVING, Packet { dscp: Dscp::new(0b00_0011), ..marked });
    let bytes = run.bytes();
    let fields = ["frame.number", "ip.dsfield", "ip.checksum.status"];
    let Some(found) = tshark("dscp.pcapng", &bytes, "ip.dsfield.dscp != 0", &fields) else { return };
    assert_eq!(found, ["6\t0x0c\t1"]);
}

#[test]
fn wireshark_shows_congestion_marks() {
    let mut run = Run::new(at_sender());
    run.shake_hands();
    for (ecn, number) in [(Ecn::Ect0, 1000), (Ecn::Ect1, 2000), (Ecn::Ce, 3000), (Ecn::NotEct, 4000)] {
        run.cross(LEAVING, Packet { ecn, ..carrying(data(number), SENDER, RECEIVER) });
    }
    let bytes = run.bytes();
    let fields = ["ip.dsfield.ecn", "ip.dsfield.dscp", "ip.checksum.status"];
    let Some(found) = tshark("ecn.pcapng", &bytes, "tcp.len > 0", &fields) else { return };
    assert_eq!(found, ["2\t0\t1", "1\t0\t1", "3\t0\t1", "0\t0\t1"]);
}

/// The bit next to CWR is AE of accurate ECN in Wireshark, NS in older versions; the bits before it are
/// reserved.
#[test]
fn wireshark_shows_feedback_bits() {
    let marked = |bit: u16, number| Segment { flags: Flags::ACK | Flags(1 << bit), ..answer(number) };
    let mut run = Run::new(at_sender());
    run.shake_hands().forth(data(1000)).back(answer(2000)).back(marked(8, 2000)).back(marked(9, 2000));
    run.back(marked(11, 2000));
    let bytes = run.bytes();
    let fields = ["frame.number", "tcp.flags", "tcp.checksum.status"];
    let Some(found) = tshark("bits.pcapng", &bytes, "tcp.flags >= 0x100", &fields) else { return };
    assert_eq!(found, ["6\t0x0110\t1", "7\t0x0210\t1", "8\t0x0810\t1"]);
    let reserved = tshark("bits.pcapng", &bytes, "tcp.flags.res == 1", &["frame.number"]).unwrap();
    assert_eq!(reserved, ["7", "8"]);
    let next_to_cwr = tshark("bits.pcapng", &bytes, "tcp.flags.ae == 1", &["frame.number"]).unwrap();
    assert_eq!(next_to_cwr, ["6"]);
}
