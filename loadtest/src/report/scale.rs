//! Axes: the position of a value between two ends, and the round values that become labels.

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From 0.
    Linear,
    /// Logarithmic: all decades have the same length.
    Log,
    /// Quantiles from 0 to 1, where each further nine (0.9, 0.99, 0.999) has the same length.
    Nines,
}

/// One axis of a plot: its label and its range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// With the unit.
    pub(super) label: String,
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A labelled value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// The position, from 0 at the low end to 1 at the high end.
    pub(super) place: f64,
    pub(super) text: String,
}

/// About so many ticks suffice.
const TICKS: f64 = 5.0;
/// The most nines that are shown.
const NINES_MAX: i32 = 5;

impl Axis {
    /// Creates an axis that fits all `values`.
    pub(super) fn around(label: &str, scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite() && (scale != Scale::Log || *value > 0.0));
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (low, high) = match scale {
            _ if least > most => (1.0, 10.0),
            Scale::Linear if most <= 0.0 => (0.0, 1.0),
            Scale::Linear => (least.min(0.0), round_up(most)),
            Scale::Log => (floor_log(least), ceil_log(most)),
            Scale::Nines => (0.0, most),
        };
        let high = if high > low { high } else { low * 10.0 };
        let label = label.to_owned();
        Self {
            label,
            scale,
            low,
            high,
        }
    }

    /// Creates an axis from exactly `low` to `high`.
    pub(super) fn between(label: &str, low: f64, high: f64) -> Self {
        let label = label.to_owned();
        let high = if high > low { high } else { low + 1.0 };
        Self {
            label,
            scale: Scale::Linear,
            low,
            high,
        }
    }

    /// Widens the axis so that it also covers the range of the other one.
    pub(super) fn widen(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// Returns the position of a value, from 0 at the low end to 1 at the high end; values beyond an end are placed at it.
    pub(super) fn place(&self, value: f64) -> f64 {
        let on = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines => nines(value),
        };
        let (low, high) = (on(self.low), on(self.high));
        ((on(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        let values: Vec<(f64, String)> = match self.scale {
            Scale::Linear => steps(self.low, self.high),
            Scale::Log => decades(self.low, self.high),
            Scale::Nines => [0.0, 0.5]
                .into_iter()
                .chain((1..=NINES_MAX).map(|nines| 1.0 - 10_f64.powi(-nines)))
                .filter(|part| *part <= self.high)
                .map(|part| (part, trimmed(part * 100.0, 3)))
                .collect(),
        };
        let tick = |(value, text)| Tick {
            place: self.place(value),
            text,
        };
        values.into_iter().map(tick).collect()
    }
}

/// Returns how many nines a quantile has; 1 has as many as are shown.
fn nines(part: f64) -> f64 {
    -(1.0 - part).max(10_f64.powi(-NINES_MAX)).log10()
}

/// Rounds up to the next 1, 2, 2.5 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * decade);
    // A value slightly above a round one, from rounding errors, counts as that one.
    steps
        .into_iter()
        .find(|step| *step * (1.0 + 1e-9) >= value)
        .unwrap_or(value)
}

fn floor_log(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step <= value).unwrap_or(decade)
}

fn ceil_log(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

fn steps(low: f64, high: f64) -> Vec<(f64, String)> {
    let step = round_up((high - low) / TICKS);
    #[expect(clippy::cast_possible_truncation, reason = "a few")]
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as i32 + 1;
    let first = (low / step).ceil();
    let values = std::iter::successors(Some(first), |count| Some(count + 1.0)).map(|count| count * step);
    values
        .take_while(|value| *value <= high * (1.0 + 1e-9))
        .map(|value| (value, trimmed(value, digits)))
        .collect()
}

fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let wide = (high / low).log10() > 3.0;
    let within: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let from = low.log10().floor();
    let decades = std::iter::successors(Some(from), |decade| Some(decade + 1.0))
        .take_while(|decade| *decade <= high.log10() + 1e-9)
        .map(|decade| 10_f64.powf(decade));
    let values = decades.flat_map(|decade| within.iter().map(move |step| step * decade));
    values
        .filter(|value| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9))
        .map(|value| (value, trimmed(value, 6)))
        .collect()
}

/// Writes at most so many digits behind the point, without trailing zeros, and separates thousands.
fn trimmed(value: f64, digits: i32) -> String {
    let digits = usize::try_from(digits).unwrap_or_default();
    let text = format!("{value:.digits$}");
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => text.as_str(),
    };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}
