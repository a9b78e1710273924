//! Invented names for the few customers of a world that a release shows: people remember a name, not a number.

const WOMEN: [&str; 20] = [
    "Ada", "Amira", "Beatrix", "Carla", "Dunja", "Elif", "Flora", "Greta", "Hana", "Ines", "Jule", "Kaja",
    "Livia", "Mirjam", "Nora", "Odile", "Paula", "Rosa", "Selma", "Vera",
];
const MEN: [&str; 20] = [
    "Adem", "Anton", "Bruno", "Cem", "Darius", "Emil", "Flavio", "Gustav", "Henri", "Ivo", "Jonas", "Karim",
    "Luca", "Matteo", "Nils", "Oskar", "Pavel", "Rafael", "Samuel", "Viktor",
];
const SURNAMES: [&str; 19] = [
    "Amsler",
    "Bertoli",
    "Caduff",
    "Demir",
    "Egger",
    "Fontana",
    "Gruber",
    "Huber",
    "Ivanova",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Moser",
    "Novak",
    "Okafor",
    "Pereira",
    "Rossi",
    "Steiner",
    "Wyss",
];

/// The name of the customer at this place, by what they say of their gender. The first 380 women and men have different ones.
pub(crate) fn invented(place: usize, gender: Option<&str>) -> String {
    let given = match gender {
        Some("female") => WOMEN,
        Some("male") => MEN,
        _ => [WOMEN, MEN][place % 2],
    };
    format!("{} {}", given[place % given.len()], SURNAMES[place % SURNAMES.len()])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_name_is_of_one() {
        let names: HashSet<String> = (0..380).map(|place| invented(place, Some("female"))).collect();
        assert_eq!(names.len(), 380);
        assert_eq!(invented(1, Some("male")), "Anton Bertoli");
    }
}
