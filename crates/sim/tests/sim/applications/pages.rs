//! Pages, by hand, over two links of 1 Mb/s and 10 ms each way.

use super::*;
use lasthop_proto::application::{Http, Objects, Page, Pages};
use lasthop_proto::{Experience, Wait};

/// A page with one object in each wave that `objects` names, all as large as the messages of [`config`].
fn page(http: Http, connections: u8, objects: &[u8], tls: bool) -> application::Config {
    let size = Distribution::Constant(Bytes(960));
    let objects = objects.iter().map(|&wave| Objects { count: 1, size, wave });
    let parsing = Distribution::Constant(Duration::ZERO);
    let pages = Pages {
        page: Page { http, connections, html: size, objects: objects.collect(), parsing },
        request: Distribution::Constant(Bytes(460)),
        reading: Distribution::Constant(Duration::from_millis(100)),
        pages: Some(2),
    };
    application::Config { start: Time::ZERO, stop: Time::NEVER, tls, activity: Activity::Pages(pages) }
}

/// The times of the pages in microseconds, and of the responses of the first page.
fn loads(config: application::Config, lost: [u32; 2]) -> (Vec<u64>, Vec<u64>) {
    let objects = match &config.activity {
        Activity::Pages(pages) => pages.page.objects.len(),
        _ => unreachable!(),
    };
    let Net { builder, client: asks, .. } = net(&bare(), config, 0, lost);
    let mut engine = builder.build(NoTap);
    assert_eq!(engine.run(&[asks], at(100_000_000)), Ended::Finished);
    let client = client(&engine, asks);
    let Experience::Pages(pages) = client.experience(engine.now()) else { panic!("it reads pages") };
    let us = |wait: &Wait| wait.length.as_nanos() / 1_000;
    assert_eq!(client.waits().len(), 2 * (1 + objects));
    (pages.iter().map(us).collect(), client.waits()[..=objects].iter().map(us).collect())
}

/// A request takes 4 ms, its acknowledgement 0.32 ms, a response 8 ms, and each crosses in 10 ms. All requests but the first of
/// a page wait for the acknowledgement of the response before them.
const FIRST: u64 = 4_000 + 10_000 + 320 + 8_000 + 10_000;
const NEXT: u64 = 320 + FIRST;

#[test]
fn html_comes_before_what_it_names() {
    // Without objects, a page is its HTML.
    assert_eq!(loads(page(Http::Http2, 6, &[], false), [0, 0]), (vec![FIRST; 2], vec![FIRST]));
    // One object after the other, each named by the one before.
    let (pages, each) = loads(page(Http::Http2, 6, &[1, 2, 3], false), [0, 0]);
    assert_eq!((pages, each), (vec![FIRST + 3 * NEXT; 2], vec![FIRST, NEXT, NEXT, NEXT]));
    // Waves without objects are passed over, and the order in which groups are written does not matter.
    assert_eq!(loads(page(Http::Http2, 6, &[7, 3], false), [0, 0]).0, vec![FIRST + 2 * NEXT; 2]);
}

#[test]
fn objects_of_a_wave_are_asked_for_together() {
    // The second request arrives 4 ms after the first. Its acknowledgement and response wait for the first response.
    let together = NEXT + 320 + 8_000;
    for (http, connections) in [(Http::Http2, 1), (Http::Http11, 2), (Http::Http11, 6)] {
        let (pages, each) = loads(page(http, connections, &[1, 1], false), [0, 0]);
        assert_eq!((pages, each), (vec![FIRST + together; 2], vec![FIRST, NEXT, together]), "{http:?}");
    }
    // A connection of HTTP/1.1 has one request at a time.
    assert_eq!(loads(page(Http::Http11, 1, &[1, 1], false), [0, 0]).0, vec![FIRST + 2 * NEXT; 2]);
}

/// A ClientHello of 517 B, and 4,000 B in three segments back; then the first request follows an acknowledgement.
#[test]
fn a_connection_begins_with_a_tls_handshake() {
    let hello = (557 * 8 + 10_000) + 320 + (4_000 + 3 * 40) * 8 + 10_000;
    let (pages, each) = loads(page(Http::Http2, 6, &[], true), [0, 0]);
    assert_eq!((pages, each), (vec![hello + NEXT, FIRST], vec![hello + NEXT]));
}

/// Over two connections, a lost response delays only the objects of its own connection; over one, everything behind it.
#[test]
fn a_loss_blocks_what_is_behind_it_on_its_connection() {
    // The fourth packet of the server is the response to the first of two requests of wave 1.
    let lost = [0, 0b1000];
    let both = loads(page(Http::Http11, 2, &[1, 1], false), lost).1;
    let one = loads(page(Http::Http2, 1, &[1, 1], false), lost).1;
    assert!(both[1] < 100_000 && both[2] > 200_000, "{both:?}");
    assert!(one[1] > 200_000 && one[2] > 200_000, "{one:?}");
}

/// Whatever is lost, every object of every page comes, at its size.
#[test]
fn every_page_is_loaded_whatever_is_lost() {
    for http in [Http::Http11, Http::Http2] {
        for pattern in 0..1u32 << 10 {
            let config = page(http, 3, &[1, 1, 1, 2], pattern % 2 == 0);
            let Net { builder, client: asks, server: answers } =
                net(&Settings::default(), config, 0, [pattern, !pattern & 1023]);
            let mut engine = builder.build(NoTap);
            assert_eq!(engine.run(&[asks], at(3_600_000_000)), Ended::Finished, "{http:?} {pattern:b}");
            engine.run(&[], Time::NEVER);
            let client = client(&engine, asks);
            assert_eq!((client.requests(), client.waits().len()), (10, 10));
            let delivered: Bytes =
                client.exchange().connections().iter().map(|end| end.receiver().stats().delivered).sum();
            let used = client
                .exchange()
                .connections()
                .iter()
                .filter(|end| end.receiver().stats().delivered > Bytes(0));
            let hellos = if pattern % 2 == 0 { used.count() as u64 } else { 0 };
            assert_eq!(delivered, Bytes(10 * 960 + 4_000 * hellos), "{http:?} {pattern:b}");
            let unsent =
                server(&engine, answers).connections().iter().map(|end| end.sender().unsent()).sum::<u64>();
            assert_eq!(unsent, 0);
        }
    }
}

/// A browser opens no more connections than it has objects for.
#[test]
fn connections_are_opened_when_needed() {
    let Net { builder, client: asks, .. } = net(&bare(), page(Http::Http11, 6, &[1, 1, 1], false), 0, [0, 0]);
    let mut engine = builder.build(NoTap);
    engine.run(&[asks], at(100_000_000));
    let used = client(&engine, asks)
        .exchange()
        .connections()
        .iter()
        .map(|end| end.sender().stats().segments_sent > 0);
    assert_eq!(used.collect::<Vec<_>>(), [true, true, true, false, false, false]);
}

/// Drops every packet of a flow.
struct Cut(FlowId);

impl Component for Cut {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        match packet.flow == self.0 {
            true => out.drop(*packet, DropReason::Scripted),
            false => out.send(Port(packet.flow.0), *packet),
        }
    }
}

/// If one of six connections aborts, so do the others, those that were never opened included; the client finishes once.
#[test]
fn one_aborted_connection_ends_the_application() {
    let settings = Settings { user_timeout: Some(Duration::from_secs(5)), ..Settings::default() };
    for (cut, objects) in (2..8).flat_map(|flow| [(flow, &[1; 4][..]), (flow, &[1; 9])]) {
        let config = page(Http::Http11, 6, objects, false);
        let Net { builder, client: asks, server: answers } =
            net_with(&settings, config, 0, [Cut(FlowId(cut)), Cut(FlowId(cut))]);
        let mut engine = builder.build(Sent::default());
        assert_eq!(engine.run(&[asks], at(60_000_000)), Ended::Finished, "{cut}");
        assert_eq!(engine.run(&[], at(3_600_000_000)), Ended::Idle, "{cut}");
        assert_eq!(engine.tap().1.len(), 1, "{cut}");
        let client = client(&engine, asks);
        assert_eq!(client.experience(engine.now()), Experience::Pages(Vec::new()));
        let unused =
            client.exchange().connections().iter().filter(|end| end.sender().stats().segments_sent == 0);
        assert_eq!(unused.count(), 6 - objects.len().min(6), "{cut}");
        let opened = server(&engine, answers).connections().iter();
        assert!(opened.filter(|end| end.sender().stats().segments_sent > 0).count() <= objects.len().min(6));
    }
}
