//! The built-in climate normals, and which place is meant.

/// What every answer names as its source: it is no observation, and nobody should take it for one.
pub(crate) const SOURCE: &str =
    "built-in climate normals: rounded long-term means for the month, not an observation";

/// How far a pair of coordinates may be from a city to be answered with it, in kilometres.
const REACH_KM: f64 = 150.0;

/// One city's means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct City {
    pub(crate) name: String,
    pub(crate) country: String,
    latitude: f64,
    longitude: f64,
    /// °C, from January.
    celsius: [f64; 12],
    /// mm, from January.
    millimetres: [f64; 12],
}

impl City {
    /// Mean temperature in °C and precipitation in mm of a month, from 1.
    pub(crate) fn month(&self, month: u8) -> Option<(f64, f64)> {
        let index = usize::from(month).checked_sub(1)?;
        Some((*self.celsius.get(index)?, *self.millimetres.get(index)?))
    }
}

/// All cities, sorted by name.
pub(crate) struct Normals(Vec<City>);

impl Normals {
    /// Reads the table that is compiled in.
    pub(crate) fn built_in() -> Result<Self, String> {
        include_str!("normals.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| city(line).ok_or_else(|| format!("not a city's line: {line}")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The city of that name, or the nearest one to `latitude, longitude`.
    pub(crate) fn find(&self, location: &str) -> Result<&City, String> {
        if let Some((latitude, longitude)) = coordinates(location) {
            return self.nearest(latitude, longitude);
        }
        let wanted = folded(location);
        self.0
            .iter()
            .find(|city| {
                folded(&city.name) == wanted
                    || folded(&format!("{}, {}", city.name, city.country)) == wanted
            })
            .ok_or_else(|| {
                let known: Vec<&str> = self.0.iter().map(|city| city.name.as_str()).collect();
                format!(
                    "there is no data for `{}`; known are {}",
                    location.escape_debug(),
                    known.join(", ")
                )
            })
    }

    fn nearest(&self, latitude: f64, longitude: f64) -> Result<&City, String> {
        let distance = |city: &City| kilometres(latitude, longitude, city.latitude, city.longitude);
        self.0
            .iter()
            .map(|city| (distance(city), city))
            .min_by(|(a, _), (b, _)| a.total_cmp(b))
            .filter(|(distance, _)| *distance <= REACH_KM)
            .map(|(_, city)| city)
            .ok_or_else(|| {
                format!("no city with data lies within {REACH_KM} km of {latitude}, {longitude}")
            })
    }
}

fn city(line: &str) -> Option<City> {
    let [name, country, latitude, longitude, celsius, millimetres] =
        <[&str; 6]>::try_from(line.split('\t').collect::<Vec<_>>()).ok()?;
    Some(City {
        name: name.to_owned(),
        country: country.to_owned(),
        latitude: latitude.parse().ok()?,
        longitude: longitude.parse().ok()?,
        celsius: months(celsius)?,
        millimetres: months(millimetres)?,
    })
}

fn months(text: &str) -> Option<[f64; 12]> {
    let values: Option<Vec<f64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    values?.try_into().ok()
}

/// Reads `52.52, 13.41`; `None` for what is no pair of numbers in range.
fn coordinates(text: &str) -> Option<(f64, f64)> {
    let (latitude, longitude) = text.split_once(',')?;
    let latitude: f64 = latitude.trim().parse().ok()?;
    let longitude: f64 = longitude.trim().parse().ok()?;
    ((-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude))
        .then_some((latitude, longitude))
}

/// Case, outer spaces and the accents of the names in the table make no difference.
fn folded(text: &str) -> String {
    text.trim()
        .to_lowercase()
        .chars()
        .map(|c| match c {
            'á' | 'ã' | 'â' => 'a',
            'é' | 'è' => 'e',
            'í' => 'i',
            'ó' => 'o',
            other => other,
        })
        .collect()
}

/// Great-circle distance.
fn kilometres(latitude_a: f64, longitude_a: f64, latitude_b: f64, longitude_b: f64) -> f64 {
    const EARTH_RADIUS: f64 = 6_371.0;
    let (a, b) = (latitude_a.to_radians(), latitude_b.to_radians());
    let half_north = (b - a) / 2.0;
    let half_east = (longitude_b - longitude_a).to_radians() / 2.0;
    let chord = half_north.sin().powi(2) + a.cos() * b.cos() * half_east.sin().powi(2);
    2.0 * EARTH_RADIUS * chord.sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(location: &str) -> Result<String, String> {
        Normals::built_in()
            .unwrap()
            .find(location)
            .map(|city| city.name.clone())
    }

    #[test]
    fn the_table_is_whole_sorted_and_plausible() {
        let Normals(cities) = Normals::built_in().unwrap();
        assert!(cities.len() >= 50);
        assert!(cities.windows(2).all(|pair| pair[0].name < pair[1].name));
        for city in &cities {
            assert!(
                city.celsius.iter().all(|t| (-15.0..40.0).contains(t)),
                "{city:?}"
            );
            assert!(
                city.millimetres.iter().all(|p| (0.0..1_000.0).contains(p)),
                "{city:?}"
            );
            // Away from the tropics the warm half of the year is the hemisphere's own.
            if city.latitude.abs() > 30.0 {
                let north_is_warm = city.celsius[6] > city.celsius[0];
                assert_eq!(north_is_warm, city.latitude > 0.0, "{city:?}");
            }
        }
    }

    #[test]
    fn a_place_is_found_by_name_by_name_and_country_and_by_coordinates() {
        for location in [
            "Berlin",
            " berlin ",
            "Berlin, Germany",
            "52.5, 13.4",
            "52.39,13.06",
        ] {
            assert_eq!(name(location).as_deref(), Ok("Berlin"), "{location}");
        }
        assert_eq!(name("São Paulo").as_deref(), Ok("Sao Paulo"));
        assert!(name("-36.9, -185.2").is_err());
    }

    #[test]
    fn an_unknown_place_is_an_error_that_lists_the_known_ones() {
        let error = name("Berlin, Texas").unwrap_err();
        assert!(
            error.contains("`Berlin, Texas`") && error.contains("Toronto"),
            "{error}"
        );
        let error = name("0, -150").unwrap_err();
        assert!(error.contains("within 150 km"), "{error}");
    }

    #[test]
    fn a_month_that_does_not_exist_has_no_means() {
        let normals = Normals::built_in().unwrap();
        let city = normals.find("Oslo").unwrap();
        assert_eq!((city.month(0), city.month(13)), (None, None));
        assert_eq!(city.month(1), Some((-3.0, 58.0)));
    }
}
