//! What the pages of a window are made to see: a device, a colour scheme, a place, a slow network.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A preset of network conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
#[value(rename_all = "camelCase")]
pub enum NetworkPreset {
    None,
    Offline,
    Slow3g,
    Fast3g,
    Slow4g,
    Fast4g,
}

/// A colour scheme that the user prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum ColorScheme {
    None,
    Light,
    Dark,
}

/// A medium of CSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum CssMedia {
    None,
    Screen,
    Print,
}

/// What is emulated. What is absent is as the browser has it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PageEmulation {
    /// Its name, where the others come from one.
    pub device: Option<String>,
    /// CSS pixels.
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Pixels of the screen for a CSS pixel.
    pub scale: Option<f64>,
    pub mobile: Option<bool>,
    pub touch: Option<bool>,
    pub user_agent: Option<String>,
    pub color_scheme: Option<ColorScheme>,
    pub reduced_motion: Option<bool>,
    pub media: Option<CssMedia>,
    pub locale: Option<String>,
    pub time_zone: Option<String>,
    /// Degrees north and east.
    pub latitude: Option<f64>,
    pub longitude: Option<f64>,
    /// How many times slower the processor is.
    pub cpu_slowdown: Option<f64>,
    pub network: Option<NetworkPreset>,
}

/// Name, width, height, scale and user agent of a device; those with a user agent are mobile, with a touch screen.
pub type DeviceRow = (&'static str, u32, u32, f64, &'static str);

const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
const IPAD: &str = "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
const ANDROID: &str =
    "Mozilla/5.0 (Linux; Android 15; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36";
const TABLET: &str =
    "Mozilla/5.0 (Linux; Android 15; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

/// The devices by name.
pub const DEVICES: &[DeviceRow] = &[
    ("iPhone SE", 375, 667, 2.0, IPHONE),
    ("iPhone 13", 390, 844, 3.0, IPHONE),
    ("iPhone 15", 393, 852, 3.0, IPHONE),
    ("iPhone 15 Pro Max", 430, 932, 3.0, IPHONE),
    ("iPad Mini", 768, 1024, 2.0, IPAD),
    ("iPad Pro 11", 834, 1194, 2.0, IPAD),
    ("Pixel 7", 412, 915, 2.625, ANDROID),
    ("Pixel 8", 412, 915, 2.625, ANDROID),
    ("Galaxy S24", 360, 780, 3.0, ANDROID),
    ("Galaxy Tab S9", 640, 1024, 2.5, TABLET),
    ("Laptop", 1366, 768, 1.0, ""),
    ("Laptop HiDPI", 1440, 900, 2.0, ""),
    ("Desktop", 1920, 1080, 1.0, ""),
];

impl PageEmulation {
    /// Takes size, scale, touch and user agent from a device; `None`: there is none of this name.
    pub fn set_device(&mut self, name: &str) -> Option<()> {
        let (name, width, height, scale, agent) = DEVICES.iter().find(|row| row.0.eq_ignore_ascii_case(name))?;
        let is_mobile = !agent.is_empty();
        self.device = Some((*name).to_owned());
        (self.width, self.height, self.scale) = (Some(*width), Some(*height), Some(*scale));
        (self.mobile, self.touch) = (Some(is_mobile), Some(is_mobile));
        self.user_agent = is_mobile.then(|| (*agent).to_owned());
        Some(())
    }

    /// In one line; `None`: nothing is emulated.
    pub fn describe(&self) -> Option<String> {
        let mut facts = Vec::new();
        if let (Some(width), Some(height)) = (self.width, self.height) {
            let scale = self.scale.filter(|scale| (*scale - 1.0).abs() > f64::EPSILON);
            let scale = scale.map(|scale| format!(" ×{scale}")).unwrap_or_default();
            let size = format!("{width}×{height}{scale}");
            facts.push(self.device.as_ref().map_or(size.clone(), |name| format!("{name} ({size})")));
        }
        facts.extend(self.mobile.filter(|it| *it).map(|_| "mobile".to_owned()));
        facts.extend(self.touch.filter(|it| *it).map(|_| "touch".to_owned()));
        facts.extend(self.user_agent.as_ref().filter(|_| self.device.is_none()).map(|it| format!("user agent {it:?}")));
        facts.extend(self.color_scheme.map(|it| if it == ColorScheme::Dark { "dark" } else { "light" }.to_owned()));
        facts.extend(self.reduced_motion.filter(|it| *it).map(|_| "reduced motion".to_owned()));
        facts.extend(self.media.map(|it| if it == CssMedia::Print { "print" } else { "screen" }.to_owned()));
        facts.extend(self.locale.clone());
        facts.extend(self.time_zone.clone());
        facts.extend(self.latitude.zip(self.longitude).map(|(lat, lon)| format!("at {lat},{lon}")));
        facts.extend(self.cpu_slowdown.map(|it| format!("CPU {it}× slower")));
        facts.extend(self.network.map(|it| match it {
            NetworkPreset::None => "network".to_owned(),
            NetworkPreset::Offline => "offline".to_owned(),
            NetworkPreset::Slow3g => "slow 3G".to_owned(),
            NetworkPreset::Fast3g => "fast 3G".to_owned(),
            NetworkPreset::Slow4g => "slow 4G".to_owned(),
            NetworkPreset::Fast4g => "fast 4G".to_owned(),
        }));
        (!facts.is_empty()).then(|| facts.join(", "))
    }
}
