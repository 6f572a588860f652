//! The plot of a soak: memory above, descriptors below, over minutes.

use std::fmt::Write;

use super::measurements::{Measurements, Sample};

const WIDTH: f64 = 800.0;
/// Of one panel.
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 30.0;
const GAP: f64 = 50.0;

/// Draws the plot, as an SVG document.
pub fn draw_plot(measurements: &Measurements) -> String {
    let samples = &measurements.samples;
    let minutes = samples.last().map_or(1.0, |sample| sample.at.as_secs_f64() / 60.0).max(0.1);
    let (width, height) = (LEFT + WIDTH + 20.0, TOP + 2.0 * HEIGHT + GAP + 50.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let mebibytes = |sample: &Sample| sample.memory as f64 / f64::from(1 << 20);
    draw_panel(&mut svg, "memory of the supervisor (PSS), MiB", TOP, (samples, minutes), mebibytes);
    let second = TOP + HEIGHT + GAP;
    draw_panel(&mut svg, "descriptors", second, (samples, minutes), |sample| sample.descriptors as f64);
    for tick in 0..=6 {
        let (x, minute) = (LEFT + WIDTH * f64::from(tick) / 6.0, minutes * f64::from(tick) / 6.0);
        let y = second + HEIGHT + 18.0;
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{minute:.0} min</text>");
    }
    svg + "</svg>\n"
}

fn draw_panel(
    svg: &mut String,
    title: &str,
    top: f64,
    (samples, minutes): (&[Sample], f64),
    value: impl Fn(&Sample) -> f64,
) {
    let most = samples.iter().map(&value).fold(1.0, f64::max) * 1.1;
    let points: String = samples
        .iter()
        .map(|sample| {
            let x = LEFT + WIDTH * sample.at.as_secs_f64() / 60.0 / minutes;
            format!("{x:.1},{:.1} ", top + HEIGHT * (1.0 - value(sample) / most))
        })
        .collect();
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\">{title}</text>\n<rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>",
        top - 8.0
    );
    for part in [0.0, 0.5, 1.0] {
        let (y, x) = (top + HEIGHT * (1.0 - part) + 4.0, LEFT - 6.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{:.1}</text>", most * part);
    }
    let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"#0366d6\" stroke-width=\"1.5\"/>");
}
