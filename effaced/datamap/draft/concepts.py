"""What a column can hold: one row per idea, with the phrases in names that tell of it."""

from __future__ import annotations

from dataclasses import dataclass

TEXT = frozenset({"text"})
DATES = frozenset({"date", "date and time", "text", "number"})


@dataclass(frozen=True, slots=True)
class Concept:
    """One kind of content. `tells`: whether it says who somebody is, or something about them alone."""

    word: str
    label: str
    tells: bool
    phrases: tuple[str, ...]
    families: frozenset[str] | None = None


def _row(
    word: str, label: str, phrases: str, families: frozenset[str] | None = None, *, tells: bool = True
) -> Concept:
    return Concept(word, label, tells, tuple(each.strip() for each in phrases.split(",")), families)


CONCEPTS: tuple[Concept, ...] = (
    _row(
        "email",
        "e-mail address",
        """
        email, e mail, mail, email address, mail address, correo, correo electronico, courriel,
        emailadresse, mailadresse, mail adresse, e mail adresse
        """,
        TEXT,
    ),
    _row(
        "phone",
        "phone number",
        """
        phone, telephone, phone number, mobile, mobile number, cell, cell phone, fax, tel, telefon,
        telefonnummer, handy, mobil, mobilnummer, telefono, movil, portable, msisdn, phone no, tel nr,
        whatsapp
        """,
    ),
    _row(
        "first_name",
        "first name",
        """
        first name, firstname, given name, forename, fname, vorname, prenom, nombre, middle name,
        initials, rufname
        """,
        TEXT,
    ),
    _row(
        "last_name",
        "last name",
        """
        last name, lastname, surname, family name, lname, nachname, familienname, apellido, apellidos,
        nom, maiden name, geburtsname, zuname
        """,
        TEXT,
    ),
    _row(
        "full_name",
        "a person's name",
        """
        full name, fullname, display name, real name, recipient, addressee, empfaenger, contact name,
        contact person, ansprechpartner, holder, nombre completo, nom complet, legal name, preferred name,
        billed to, bill to, ship to, sold to, deliver to
        """,
        TEXT,
    ),
    _row(
        "name",
        "a name",
        """
        name, bezeichnung, label, title, titel, titre, titulo
        """,
        TEXT,
        tells=False,
    ),
    _row(
        "login",
        "login name",
        """
        username, user name, login, nickname, nick, handle, screen name, benutzername, alias, login name,
        userid
        """,
        TEXT,
    ),
    _row(
        "salutation",
        "salutation",
        """
        salutation, anrede, honorific, name prefix, civilite, tratamiento
        """,
    ),
    _row(
        "birth",
        "date of birth",
        """
        birth date, birthdate, date of birth, dob, birthday, born, born on, geburtsdatum, geburtstag, geb
        datum, gebdat, date naissance, fecha nacimiento, birth year, birth, geburtsjahr, geboren am
        """,
        DATES,
    ),
    _row(
        "street",
        "postal address",
        """
        street, address, address line, addr, strasse, straße, hausnummer, house number, house no, rue,
        adresse, anschrift, calle, direccion, domicile, line 1, line 2, address 1, address 2, street
        address, postal address, zusatz, address line 1, address line 2, shipping address, billing
        address, str, hausnr
        """,
        frozenset({"json", "text"}),
    ),
    _row(
        "city",
        "town",
        """
        city, town, ort, stadt, wohnort, ville, ciudad, locality
        """,
        TEXT,
    ),
    _row(
        "postcode",
        "postcode",
        """
        zip, zip code, zipcode, postal code, postcode, plz, postleitzahl, code postal, codigo postal
        """,
    ),
    _row(
        "country",
        "country",
        """
        country, country code, land, pays, pais, region, province, county, bundesland
        """,
        tells=False,
    ),
    _row(
        "ip",
        "IP address",
        """
        ip, ip address, ip addr, remote addr, client ip, remote ip, ipv4, ipv6, sign in ip
        """,
    ),
    _row(
        "device",
        "device or browser",
        """
        user agent, useragent, fingerprint, device id, cookie, cookie id, session id, session key, device
        token, advertising id, mac address, browser, device, session data
        """,
    ),
    _row(
        "bank",
        "bank or card details",
        """
        iban, bic, account number, bank account, card number, kontonummer, konto nr, account holder,
        kontoinhaber, sort code, last4, card last4, pan, routing number, blz, masked card, cardholder
        """,
    ),
    _row(
        "number_of_person",
        "official number of a person",
        """
        ssn, social security number, national id, passport number, passport no, passport, tax id, tax
        number, sozialversicherungsnummer, sv nummer, steuernummer, steuer id, nino, dni, nif, nie,
        insurance number, insurance no, versichertennummer, versicherten nr, kvnr, driver license, driving
        licence, nhs number, personalausweis, ausweisnummer, license plate, kennzeichen, vat id, ust id,
        svnr, id number
        """,
    ),
    _row(
        "secret",
        "password or secret",
        """
        password, passwd, pwd, pass, password hash, passwort, kennwort, token, secret, api key, salt, otp
        secret, pin, reset token, contrasena, mot de passe, encrypted password, digest, password digest,
        access token, refresh token, totp secret, pw hash, passwort hash, hashed password, private key,
        recovery codes
        """,
    ),
    _row(
        "gender",
        "gender",
        """
        gender, sex, geschlecht, sexe, sexo, pronouns, genero
        """,
    ),
    _row(
        "health",
        "health",
        """
        diagnosis, blood type, blood group, allergies, allergy, medication, medications, disability,
        symptoms, weight, height, icd, icd code, icd10, diagnose, blutgruppe, allergien, medical history,
        insurance, krankenkasse, dosage, findings, befund
        """,
    ),
    _row(
        "belief",
        "origin, belief or family",
        """
        religion, konfession, ethnicity, race, nationality, nationalitaet, staatsangehoerigkeit, marital
        status, familienstand, political party, citizenship, sexual orientation, children, relationship,
        union
        """,
    ),
    _row(
        "income",
        "income or standing",
        """
        salary, income, gehalt, wage, credit score, bonitaet, lohn, salaire, salario, grade
        """,
    ),
    _row(
        "photo",
        "picture",
        """
        photo, avatar, picture, foto, bild, signature, profile picture, portrait, avatar url, photo url,
        image, unterschrift, scan
        """,
    ),
    _row(
        "place",
        "whereabouts",
        """
        latitude, longitude, lat, lng, lon, geo, location, coordinates, standort, geolocation
        """,
    ),
    _row(
        "web",
        "personal page",
        """
        website, homepage, facebook, twitter, linkedin, instagram, github, social, web, xing
        """,
        TEXT,
    ),
    _row(
        "free_text",
        "free text",
        """
        note, notes, comment, comments, remark, remarks, description, body, message, text, content, bio,
        about, bemerkung, bemerkungen, notiz, notizen, kommentar, feedback, reason, memo, observaciones,
        remarques, summary, instructions, wishes, question, answer, subject line, beschreibung,
        transcript, nachricht, anmerkung, occupation, job title, beruf, interests, hobbies, subject,
        details, betreff, reply, excerpt
        """,
        TEXT,
    ),
    _row(
        "moment",
        "a moment",
        """
        at, on, date, time, datum, fecha, timestamp, created, updated, deleted, modified, since, until,
        from, to, von, bis, am, year, month, expires, last login, last seen, joined, day, uhrzeit, start,
        end, zeit, due
        """,
        frozenset({"date", "date and time", "number", "text", "time"}),
        tells=False,
    ),
    _row(
        "state",
        "a state or setting",
        """
        status, state, type, kind, active, enabled, locale, language, lang, sprache, currency, role,
        level, version, sort, count, qty, quantity, menge, rank, category, priority, timezone, time zone,
        flag, verified, confirmed, deleted flag, is active, opt in, optin, consent, newsletter, aktiv,
        rolle, score, stars, rating, waehrung, anzahl, plan, code, mode, method, step, tier, segment,
        source, channel, art, typ, estado, statut, position, visible, published, archived, closed, unit,
        einheit, blocked, gesperrt, attempts, action, event
        """,
        tells=False,
    ),
    _row(
        "amount",
        "an amount",
        """
        amount, total, price, tax, net, gross, discount, balance, credit, points, vat, betrag, summe,
        preis, netto, brutto, mwst, fee, cost, subtotal, cents, rate, montant, importe, rabatt, limit,
        steuer, hours, stunden
        """,
        tells=False,
    ),
    _row(
        "number",
        "a number given here",
        """
        number, no, nr, invoice number, order number, nummer, numero, sku, ref, reference, barcode, slug
        """,
        tells=False,
    ),
)
BY_WORD = {concept.word: concept for concept in CONCEPTS}
