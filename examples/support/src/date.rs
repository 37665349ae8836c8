//! Days of the Gregorian calendar, carried back before its introduction as ISO 8601 does.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A date from year 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i32,
    month: u8,
    day: u8,
}

/// Days from 0000-03-01, where the count below starts, to 1970-01-01.
const EPOCH: i64 = 719_468;
/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// English names of the months, in order.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl Date {
    /// A date that exists, or `None`.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let date = Self { year, month, day };
        // A day that does not exist counts on into the next month and comes back as another date.
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && Self::from_days(date.days()) == Some(date);
        exists.then_some(date)
    }

    /// The date of `days` since 1970-01-01, or `None` outside the years 1 to 9999.
    pub fn from_days(days: i64) -> Option<Self> {
        let days = days.checked_add(EPOCH)?;
        let era = days.div_euclid(ERA);
        let day_of_era = days.rem_euclid(ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months counted from March, so that the leap day is the year's last.
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let date = Self {
            year: i32::try_from(year).ok()?,
            month: u8::try_from(month).ok()?,
            day: u8::try_from(day).ok()?,
        };
        (1..=9999).contains(&date.year).then_some(date)
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * ERA + day_of_era - EPOCH
    }

    /// Today, in UTC; 1970-01-01 for a clock that stands before it.
    pub fn today() -> Self {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let days = i64::try_from(seconds / 86_400).unwrap_or(0);
        Self::from_days(days).unwrap_or(Self {
            year: 1970,
            month: 1,
            day: 1,
        })
    }

    /// From 1.
    pub fn month(self) -> u8 {
        self.month
    }

    /// The English name.
    pub fn weekday(self) -> &'static str {
        // 1970-01-01 was a Thursday.
        let index = (self.days() + 3).rem_euclid(7);
        usize::try_from(index).map_or(WEEKDAYS[0], |index| WEEKDAYS[index])
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |range: std::ops::Range<usize>| {
            let digits = text
                .get(range)
                .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse::<u16>().ok()
        };
        let shape = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        let parts = match (shape, number(0..4), number(5..7), number(8..10)) {
            (true, Some(year), Some(month), Some(day)) => Some((year, month, day)),
            _ => None,
        };
        let (year, month, day) =
            parts.ok_or_else(|| format!("`{text}` is no date: write YYYY-MM-DD"))?;
        u8::try_from(month)
            .ok()
            .zip(u8::try_from(day).ok())
            .and_then(|(month, day)| Self::new(i32::from(year), month, day))
            .ok_or_else(|| format!("{text} is not in the calendar"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_counts_up_by_one_and_comes_back() {
        let first = Date::new(1600, 1, 1).unwrap().days();
        let last = Date::new(2400, 12, 31).unwrap().days();
        let mut before = None;
        for days in first..=last {
            let date = Date::from_days(days).unwrap();
            assert_eq!(date.days(), days);
            assert_eq!(date.to_string().parse(), Ok(date));
            assert!(before < Some(date), "{before:?} {date}");
            before = Some(date);
        }
        assert_eq!(before, Date::new(2400, 12, 31));
    }

    #[test]
    fn known_weekdays_hold() {
        for (date, weekday) in [
            ("1970-01-01", "Thursday"),
            ("2000-02-29", "Tuesday"),
            ("1969-07-20", "Sunday"),
        ] {
            assert_eq!(date.parse::<Date>().unwrap().weekday(), weekday);
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-00-10",
            "0000-01-01",
        ] {
            assert!(
                text.parse::<Date>()
                    .unwrap_err()
                    .contains("not in the calendar"),
                "{text}"
            );
        }
        for text in ["2024-1-1", "01.02.2024", "+024-01-01", "2024-01-01T00", ""] {
            assert!(
                text.parse::<Date>().unwrap_err().contains("YYYY-MM-DD"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_ends_of_the_range_are_the_ends() {
        assert_eq!(
            Date::from_days(Date::new(9999, 12, 31).unwrap().days() + 1),
            None
        );
        assert_eq!(
            Date::from_days(Date::new(1, 1, 1).unwrap().days() - 1),
            None
        );
    }
}
