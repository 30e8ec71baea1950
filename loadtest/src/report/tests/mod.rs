//! Tests that the reports agree with the record: all forms of a small record.

mod gate;
mod markup;
mod sample;

use super::compare::Comparison;
use super::scale::{Axis, Scale};
use super::{charts, csv, growth, live, page, table};
use crate::measure::record::{Live, Record, Second, Verdict};
use sample::{growing, small};

/// A difference is either a fault or an intended change of the report; then copy the new text into the file.
fn same(answer: &str, golden: &str, file: &str) {
    for (at, (is, was)) in answer.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "line {} of {file}; all of it is now:\n{answer}", at + 1);
    }
    assert_eq!(answer.lines().count(), golden.lines().count(), "{file}:\n{answer}");
}

#[test]
fn a_small_record_as_a_table() {
    same(&table::table(&small()), include_str!("small.txt"), "small.txt");
}

#[test]
fn a_small_record_as_csv() {
    let text = csv::csv(&small());
    same(&text, include_str!("small.csv"), "small.csv");
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
}

#[test]
fn two_records_side_by_side() {
    let (a, mut b) = (small(), small());
    let changes = &mut b.phases[2];
    changes.counters.insert("bytes".to_owned(), 2_048_000.0);
    changes.figures.cpu_micros_per_delivery = Some(31.5);
    b.phases[1].name = "storm".to_owned();
    let comparison = Comparison::of(&a, &b);
    same(&comparison.table(), include_str!("two.txt"), "two.txt");
    let html = page::compared(&comparison);
    markup::check(&html);
    assert!(html.contains("id=\"a-propagation\"") && html.contains("id=\"b-propagation\""));
    for (a, b) in comparison.plots(0).iter().zip(comparison.plots(1)) {
        assert_eq!((&a.x, &a.y), (&b.x, &b.y), "the same axes on both sides");
    }
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    for record in [small(), growing()] {
        let html = page::page(&record);
        markup::check(&html);
        let foreign = [
            "<script",
            "<link",
            "src=",
            "href=",
            "url(",
            "@import",
            "@font-face",
            "http:",
            "https:",
        ];
        for word in foreign {
            assert!(!html.contains(word), "{word} leads out of the page");
        }
    }
}

#[test]
fn every_plot_can_be_read_without_seeing_it() {
    let html = page::page(&small());
    let plots = charts::plots(&small());
    let titles: Vec<_> = plots.iter().map(|plot| plot.id.as_str()).collect();
    let wanted = [
        "propagation",
        "spread",
        "joins",
        "waits",
        "bytes",
        "messages",
        "cpu",
        "memory",
        "per-client",
        "owed",
        "clients",
    ];
    assert_eq!(titles, wanted);
    for plot in &plots {
        let labelled = format!("role=\"img\" aria-labelledby=\"{id}-t {id}-d\"", id = plot.id);
        assert!(html.contains(&labelled), "{labelled}");
        assert!(html.contains(&format!(
            "<desc id=\"{}-d\">{}",
            plot.id,
            super::grid::escaped(&plot.about)
        )));
        assert!(!plot.figures.rows.is_empty(), "{} has no figures beside it", plot.id);
    }
}

/// What matters most is on top: lines are drawn from the last to the first, and the legend names each with its own stroke.
#[test]
fn a_maximum_does_not_hide_a_percentile() {
    let plots = charts::plots(&small());
    let propagation = plots.iter().find(|plot| plot.id == "propagation").unwrap();
    let (drawing, _) = propagation.drawing(super::plot::WIDTH);
    let at = |style: usize| drawing.find(&format!("<path class=\"line s{style}\"")).unwrap();
    assert!(at(3) < at(2) && at(2) < at(1) && at(1) < at(0), "{drawing}");
}

#[test]
fn every_plot_has_a_legend_that_is_true() {
    for plot in charts::plots(&small()).iter().chain(&growth::plots(&growing())) {
        let html = plot.html();
        let (_, legend) = html.split_once("<ul class=\"legend\">").unwrap();
        let (legend, rest) = legend.split_once("</ul>").unwrap();
        assert_eq!(legend.matches("<li>").count(), plot.lines.len(), "{}", plot.id);
        for (entry, line) in legend.split("<li>").skip(1).zip(&plot.lines) {
            let (_, stroke) = entry.split_once("class=\"line ").unwrap();
            let (stroke, _) = stroke.split_once('"').unwrap();
            assert!(
                entry.ends_with(&format!("{}</li>", super::grid::escaped(&line.name))),
                "{entry}"
            );
            let drawn = format!(
                "<g><title>{}</title><path class=\"line {stroke}\"",
                super::grid::escaped(&line.name)
            );
            assert!(rest.contains(&drawn), "{}: {drawn}", plot.id);
        }
    }
}

/// On a phone no column is lost: each row is a list there, and each cell says its heading.
#[test]
fn a_narrow_page_has_every_column() {
    let html = page::page(&small());
    let (_, phases) = html.split_once("<h2>Phases</h2>").unwrap();
    let (phases, _) = phases.split_once("<h2>").unwrap();
    for heading in [
        "p50",
        "p90",
        "p99",
        "max",
        "join p99",
        "per client",
        "per change",
        "tool&#39;s share",
    ] {
        assert!(
            phases.contains(&format!("data-label=\"{heading}\"")),
            "{heading}: {phases}"
        );
    }
    assert_eq!(phases.matches("<table class=\"wide\">").count(), 3);
    for plot in charts::plots(&small()) {
        let slim = plot.html();
        let (_, slim) = slim.split_once("<svg class=\"slim\" viewBox=\"0 0 370 ").unwrap();
        assert!(slim.contains("<path class=\"line s0\""), "{}", plot.id);
    }
}

#[test]
fn the_first_view_is_a_sentence_and_a_plot() {
    let html = page::page(&small());
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    let sentence = "Changes reached 100 clients 800 times, half within 5.00 ms, 99 % within 9.01 ms; \
                    2 of 4 assertions did not hold; breaches of the protocol: 3.";
    assert!(at(sentence) < at("<figure id=\"propagation\">"));
    assert!(at("<figure id=\"propagation\">") < at("<h2>Assertions</h2>"));
    assert!(page::page(&growing()).contains("</p>\n<figure id=\"growth-propagation\">"));
    let mut quiet = small();
    quiet.phases.truncate(1);
    assert!(page::page(&quiet).contains("100 clients joined, half within 50.0 ms, 99 % within 99.0 ms; "));
    quiet.phases.clear();
    assert!(page::page(&quiet).contains("<p class=\"verdict failed\">0 clients; 2 of 4"));
}

/// Eight phases of a story, with long names: each name is shown, and no name overlaps another one of its row.
#[test]
fn names_of_phases_do_not_overlap() {
    let mut record = growing();
    record.phases.truncate(8);
    record.length_ms = 28_000.0;
    for phase in &mut record.phases {
        phase.name = format!("a story: {}", phase.name);
    }
    let (html, _) = charts::plots(&record)[0].drawing(super::plot::WIDTH);
    let texts = html.split("<text class=\"name").skip(1).map(|text| {
        let leftwards = text.starts_with(" left");
        let number = |key: &str| -> f64 {
            text.split_once(key)
                .unwrap()
                .1
                .split('"')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let name = text.split_once('>').unwrap().1.split('<').next().unwrap();
        let length = 6.0 * f64::from(u32::try_from(name.len()).unwrap());
        let (x, y) = (number("x=\""), number("y=\""));
        if leftwards {
            (y, x - length, x)
        } else {
            (y, x, x + length)
        }
    });
    let mut texts: Vec<(f64, f64, f64)> = texts.collect();
    assert_eq!(texts.len(), 8, "{html}");
    texts.sort_by(|a, b| a.partial_cmp(b).unwrap());
    for pair in texts.windows(2) {
        assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
    }
}

#[test]
fn what_failed_stands_before_every_figure() {
    let html = page::page(&small());
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("2 of 4 assertions did not hold") < at("<h2>Assertions</h2>"));
    assert!(at("VOID") < at("<h2>Phases</h2>"));
    assert!(at("client 17 (changes)") < at("<h2>Phases</h2>"));
    assert!(at("&lt;- cds [a@1 &amp; b@1] nonce &quot;3&quot;") < at("<h2>Phases</h2>"));
}

#[test]
fn a_record_holds_when_all_of_it_does() {
    let mut record = small();
    assert!(!record.held());
    record.assertions.retain(|assertion| assertion.verdict == Verdict::Held);
    assert!(!record.held(), "a client saw a breach");
    record.breaches.clear();
    record.breached = 0;
    assert!(record.held());
    record.assertions = small().assertions;
    record
        .assertions
        .retain(|assertion| assertion.verdict != Verdict::Failed);
    assert!(!record.held(), "what is void did not hold");
}

#[test]
fn growth_is_shown_from_the_smallest_to_the_largest_fleet() {
    assert!(growth::plots(&small()).is_empty());
    let plots = growth::plots(&growing());
    let ids: Vec<_> = plots.iter().map(|plot| plot.id.as_str()).collect();
    let wanted = [
        "growth-propagation",
        "growth-join",
        "growth-cpu",
        "growth-memory",
        "growth-resident",
        "growth-upstream-streams",
    ];
    assert_eq!(ids, wanted);
    for plot in &plots {
        assert_eq!((plot.x.scale, plot.x.low, plot.x.high), (Scale::Log, 100.0, 50_000.0));
        let clients: Vec<f64> = plot.lines[0].points.iter().map(|(clients, _)| *clients).collect();
        assert_eq!(
            clients,
            [100.0, 400.0, 1600.0, 6400.0, 25_600.0, 40_000.0],
            "{}",
            plot.id
        );
        assert!(
            plot.lines
                .iter()
                .all(|line| line.points.iter().all(|(_, value)| value.is_some()))
        );
    }
}

#[test]
fn axes_have_room_and_round_ticks() {
    let ticks = |axis: &Axis| {
        let ticks = axis.ticks();
        assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.place)), "{ticks:?}");
        assert!(ticks.windows(2).all(|pair| pair[0].place < pair[1].place), "{ticks:?}");
        ticks.into_iter().map(|tick| tick.text).collect::<Vec<_>>()
    };
    let linear = Axis::around("", Scale::Linear, [3.0, 87.0].into_iter());
    assert_eq!((linear.low, linear.high), (0.0, 100.0));
    assert_eq!(ticks(&linear), ["0", "20", "40", "60", "80", "100"]);
    let log = Axis::around("", Scale::Log, [0.7, 0.0, 42.0].into_iter());
    assert_eq!((log.low, log.high), (0.5, 50.0));
    assert_eq!(ticks(&log), ["0.5", "1", "2", "5", "10", "20", "50"]);
    let wide = Axis::around("", Scale::Log, [1.0, 40_000.0].into_iter());
    assert_eq!(ticks(&wide), ["1", "10", "100", "1,000", "10,000"]);
    let nines = Axis::around("", Scale::Nines, [0.5, 0.9995].into_iter());
    assert_eq!(ticks(&nines), ["0", "50", "90", "99", "99.9"]);
    assert!(nines.place(0.9) < nines.place(0.99));
    let nothing = Axis::around("", Scale::Linear, std::iter::empty());
    assert!(nothing.high > nothing.low);
    let zero = Axis::around("", Scale::Linear, [0.0].into_iter());
    assert!(!ticks(&zero).is_empty());
}

#[test]
fn a_second_is_one_line() {
    let second = small().phases[2].series[0].clone();
    let phase = Some("changes".to_owned());
    let line = live::sentence(&Live {
        phase,
        second,
        joins_micros: None,
        counters: [].into(),
    });
    let wanted = "changes | 8.00 s | 100 clients, 3 deliveries to come | 400 deliveries, p50 4.00 ms, p99 9.00 ms | 400 KiB/s | server 10.0 %, 5.00 MiB | tool 15.0 %";
    assert_eq!(line, wanted);
    let second = Second {
        clients: 200,
        with_stream: Some(198),
        owed: Some(132),
        ..Second::default()
    };
    let line = live::sentence(&Live {
        phase: None,
        second,
        joins_micros: None,
        counters: [].into(),
    });
    assert!(
        line.contains("| 200 clients, 198 with a stream, 132 deliveries to come |"),
        "{line}"
    );
    let second = Second::default();
    assert_eq!(
        live::sentence(&Live {
            phase: None,
            second,
            joins_micros: None,
            counters: [].into(),
        }),
        "between phases | 0 ms | 0 clients | 0 B/s | tool 0 %"
    );
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(table::date(0), "1970-01-01 00:00:00 UTC");
    assert_eq!(table::date(951_827_696), "2000-02-29 12:34:56 UTC");
    assert_eq!(table::date(1_795_189_616), "2026-11-20 15:46:56 UTC");
}

#[test]
fn a_record_survives_its_file() {
    let record = small();
    let text = serde_json::to_string_pretty(&record).unwrap();
    let back: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(table::table(&back), table::table(&record));
    assert_eq!(page::page(&back), page::page(&record));
}

/// The picture has no external parts, and has every plot of growth.
#[test]
fn growth_is_one_picture() {
    let grown = growing();
    let svg = super::picture::picture(&grown).unwrap();
    markup::check(&format!("<!DOCTYPE html>\n{svg}"));
    for plot in growth::plots(&grown) {
        assert!(svg.contains(&super::grid::escaped(&plot.title)), "{}", plot.title);
    }
    assert!(!svg.contains("href") && !svg.contains("url("));
    assert!(super::picture::picture(&small()).is_err());
}
