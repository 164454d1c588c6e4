"""Which names of tables and columns sound like people, for the notes of `effaced datamap check`.

Fewer words than the draft knows, and only those that hardly ever mean anything else: a draft is looked
through once, but notes that are wrong too often are read by nobody.
"""

from __future__ import annotations

from functools import cache

from effaced.datamap.draft import words
from effaced.datamap.draft.names import names_person, pieces, singular

# One line per kind of data: what it is, and how such columns are called.
_COLUMNS = """
an e-mail address: email, e mail, mail address, email address, courriel, correo, mailadresse
a phone number: phone, phone number, telephone, mobile number, cell phone, fax, msisdn
a phone number: telefon, telefonnummer, handy, handynummer, mobilnummer, telefono
a person's name: first name, firstname, last name, lastname, surname, given name, family name, full name
a person's name: fullname, maiden name, middle name, username, nickname, vorname, nachname, familienname
a person's name: geburtsname, prenom, apellido, apellidos, nombre completo
a date of birth: birth date, birthdate, date of birth, dob, birthday, born on, geburtsdatum, geburtstag
a date of birth: date naissance, fecha nacimiento
an address: street, street address, house number, postal address, billing address, shipping address
an address: strasse, hausnummer, anschrift, wohnort
an IP address: ip, ip address, ip addr, remote addr, client ip, remote ip
a browser or device: user agent, device id, fingerprint, advertising id, mac address
bank or card details: iban, card number, bank account, account holder, kontonummer, kontoinhaber, cardholder
an official number of a person: ssn, social security number, national id, passport number, passport no, nino
an official number of a person: tax id, sozialversicherungsnummer, steuernummer, versichertennummer
a password or secret: password, passwd, password hash, passwort, kennwort, contrasena, mot de passe
a password or secret: reset token, access token, refresh token
a trait of a person: gender, geschlecht, religion, konfession, ethnicity, nationality, marital status
a trait of a person: familienstand, blood type, diagnosis, salary, gehalt
"""


def column_sounds_like(name: str) -> str | None:
    """What about a person a column of that name most likely holds; None if the name does not tell."""
    found = pieces(name)
    while len(found) > 1 and found[-1] in words.HARMLESS:
        found = found[:-1]
    for phrase, label in _phrases():
        if found[-len(phrase) :] == phrase:
            return label
    return "a person's name" if len(found) > 1 and found[-1] == "name" and names_person(name) else None


def table_sounds_like(name: str) -> str | None:
    """The word for people that a table's name ends in."""
    found = pieces(name.rpartition(".")[2])
    known = {*words.PEOPLE, *words.STAFF}
    return found[-1] if found and {found[-1], singular(found[-1])} & known else None


@cache
def _phrases() -> tuple[tuple[tuple[str, ...], str], ...]:
    found = []
    for line in _COLUMNS.strip().splitlines():
        label, _, phrases = line.partition(": ")
        found += [(pieces(phrase), label) for phrase in phrases.split(", ")]
    return tuple(found)
