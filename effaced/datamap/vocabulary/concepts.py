"""What a column can hold: one row per idea, with the phrases in names that tell of it.

English, German, French, Spanish, Italian, Dutch, Polish and Portuguese, without accents. Phrases before the
semicolon hardly ever mean anything else: `effaced datamap check` notes columns called so. A draft is looked
through once and goes by the others as well. To teach both a new word, add it here.
"""

from __future__ import annotations

from dataclasses import dataclass

TEXT = frozenset({"text"})
DATES = frozenset({"date", "date and time", "text", "number"})
_MASS = ("bank", "gender", "health", "body", "belief", "income", "place")


@dataclass(frozen=True, slots=True)
class Concept:
    """One kind of content. `personal`: whether it says who somebody is, or something about them alone."""

    word: str
    label: str
    personal: bool
    phrases: tuple[str, ...]
    sure_phrases: tuple[str, ...]
    families: frozenset[str] | None = None

    @property
    def with_article(self) -> str:
        """The label with its article: an e-mail address."""
        if self.word in _MASS or self.label.startswith("a "):
            return self.label
        return f"{'an' if self.label[0] in 'aeiouI' else 'a'} {self.label}"


def _concept(
    word: str, label: str, phrases: str, families: frozenset[str] | None = None, *, personal: bool = True
) -> Concept:
    sure, _, more = phrases.partition(";")
    certain, likely = (
        tuple(" ".join(each.split()) for each in part.split(",") if each.strip()) for part in (sure, more)
    )
    return Concept(word, label, personal, (*certain, *likely), certain, families)


CONCEPTS: tuple[Concept, ...] = (
    _concept("email", "e-mail address", """
        email, e mail, mail address, email address, courriel, correo, correo electronico, mailadresse,
        emailadresse, mail adresse, e mail adresse, indirizzo email, adres email, emailadres, posta
        elettronica; mail, emailadr
        """, TEXT),
    _concept("phone", "phone number", """
        phone, phone number, phone no, telephone, mobile number, cell phone, fax, msisdn, telefon,
        telefonnummer, handy, handynummer, mobilnummer, telefono, telefoon, telefoonnummer, numer telefonu,
        cellulare, telefone, komorka; mobile, cell, tel, mobil, movil, portable, tel nr, tel no, mob no,
        mobnr, telnr, gsm nr, whatsapp, gsm, recapito, celular
        """),
    _concept("first_name", "first name", """
        first name, firstname, given name, forename, middle name, vorname, prenom, imie, voornaam; fname,
        vname, roepnaam, voorl, initials, rufname, primer nombre, nombre de pila, imiona
        """, TEXT),
    _concept("last_name", "last name", """
        last name, lastname, surname, family name, maiden name, nachname, familienname, geburtsname,
        apellido, apellidos, cognome, nazwisko, achternaam, sobrenome, nom de famille; lname, nname, anaam,
        tussenv, tussenvoegsel, zuname, apelido
        """, TEXT),
    _concept("full_name", "a person's name", """
        full name, fullname, real name, nombre completo, nom complet, nome completo, imie i nazwisko;
        recipient, addressee, empfaenger, contact name, contact person, persona contacto, ansprechpartner,
        holder, titulaire, titular, intestatario, legal name, preferred name, billed to, bill to, ship to,
        sold to, deliver to, ten name van, tnv, beneficiary, pickup name
        """, TEXT),
    # Anybody's or anything's: the table says which.
    _concept("name", "a name", """;
        name, bezeichnung, label, title, titel, titre, titulo, display name, nombre, nom, nome, naam, nazwa,
        libelle, denominazione, omschrijving, nicename
        """, TEXT, personal=False),
    _concept("login", "login name", """
        username, user name, nickname, screen name, benutzername, login name, gebruikersnaam, nome utente,
        nombre usuario; login, nick, handle, alias, userid, pseudo, usuario, utilisateur, uzytkownik, utente
        """, TEXT),
    _concept("salutation", "salutation", """;
        salutation, anrede, honorific, name prefix, civilite, tratamiento, aanhef
        """),
    _concept("birth", "date of birth", """
        birth date, birthdate, date of birth, dob, birthday, born on, geburtsdatum, geburtstag, date
        naissance, date de naissance, fecha nacimiento, fecha de nacimiento, data nascita, data di nascita,
        data urodzenia, geboortedatum, data nascimento; born, geb datum, gebdat, birth year, birth,
        geburtsjahr, geboren am, fec nac, fecha nac, fec nacimiento, date nasc, date naiss, naissance,
        nacimiento, place of birth, birthplace, pob, lieu naissance, lieu de naissance, geburtsort, lugar
        nacimiento, luogo nascita, miejsce urodzenia
        """, DATES),
    _concept("street", "address", """
        street, street address, house number, postal address, billing address, shipping address, home
        address, strasse, hausnummer, anschrift, wohnort, domicilio, indirizzo, ulica, straat, huisnummer,
        nr domu; address, address line, house no, rue, adresse, calle, direccion, domicile, line 1, line 2,
        address 1, address 2, zusatz, hnr, huisnr, address line 1, address line 2, str, hausnr, via, adres,
        endereco, direccion envio
        """, frozenset({"json", "text"})),
    _concept("city", "town", """;
        city, town, ort, stadt, ville, ciudad, locality, poblacion, municipio, citta, comune, miasto,
        miejscowosc, plaats, woonplaats, wplaats, cidade, localidad
        """, TEXT),
    _concept("postcode", "postcode", """;
        zip, pcode, zip code, zipcode, postal code, postcode, plz, postleitzahl, code postal, codigo postal,
        cod postal, cp, kod pocztowy, cep
        """),
    _concept("country", "country", """;
        country, country code, land, pays, pais, region, province, county, bundesland, provincia, kraj,
        paese
        """, personal=False),
    _concept("ip", "IP address", """
        ip, ip address, remote address, client ip, remote ip, adresse ip, direccion ip, indirizzo ip; ipv4,
        ipv6, sign in ip
        """),
    _concept("device", "browser or device", """
        user agent, useragent, device id, fingerprint, advertising id, mac address; cookie, cookie id,
        session id, session key, device token, browser, device, session data
        """),
    _concept("bank", "bank or card details", """
        iban, card number, bank account, account holder, kontonummer, kontoinhaber, cardholder, cuenta
        bancaria, numer konta, rekeningnummer, conto corrente; bic, account number, konto nr, sort code,
        last4, card last4, last 4, pan, routing number, blz, masked card, card holder, ktoinh
        """),
    _concept("number_of_person", "official number of a person", """
        ssn, social security number, national id, passport number, passport no, nino, tax id, steuernummer,
        sozialversicherungsnummer, versichertennummer, pesel, codice fiscale, bsn, dni, cpf, num secu, nir,
        numero securite sociale, national insurance no, national insurance number, passport; tax number, tax
        no, sv nummer, steuer id, nif, nie, insurance number, insurance no, versicherten nr, kvnr, driver
        license, driving licence, driver licence, licence number, nhs number, personalausweis,
        ausweisnummer, license plate, car plate, number plate, kennzeichen, svnr, id number,
        id document number, document number, document no, id doc no, doc no, matriculation no, matriculation
        number, matrikelnummer
        """),
    # A trader's, and so hardly ever a person's alone.
    _concept("vat", "VAT or company number", """;
        vat id, vat number, vat no, ust id, ustid, btw nummer, btw nr, partita iva, company number, company
        no, handelsregisternummer, siret, siren
        """),
    _concept("secret", "password or secret", """
        password, passwd, password hash, passwort, kennwort, contrasena, mot de passe, reset token, access
        token, refresh token, wachtwoord, haslo, senha, mdp; pwd, pass, token, secret, api key, salt, otp
        secret, pin, encrypted password, digest, password digest, totp secret, pw hash, passwort hash,
        hashed password, clave, private key, recovery codes, activation key, activation code, consumer key,
        pwd hash, token hash
        """),
    _concept("gender", "gender", """
        gender, geschlecht; sex, sexe, sexo, sesso, plec, geslacht, pronouns, genero
        """),
    _concept("health", "health", """
        blood type, diagnosis, blood group, allergies, diagnostico, alergias, rozpoznanie; allergy,
        medication, medications, disability, symptoms, icd, icd code, icd10, diagnose, blutgruppe,
        allergien, medical history, insurance, krankenkasse, dosage, findings, befund, grupo sanguineo,
        diagnosi, allergie, dietary, injury
        """),
    # A parcel has these too.
    _concept("body", "body measures", "; weight, height, groesse, gewicht, taille, poids, peso, altura"),
    _concept("belief", "origin, belief or family", """
        religion, konfession, ethnicity, nationality, marital status, familienstand; race, nationalitaet,
        staatsangehoerigkeit, political party, citizenship, sexual orientation, seeking, interested in,
        konf, immigration status, visa status, visa type, residence permit, migration status, children,
        relationship, union, nationalite, nacionalidad, estado civil, situation familiale, nazionalita,
        parentesco
        """),
    _concept("income", "income or standing", """
        salary, gehalt; income, wage, credit score, bonitaet, lohn, salaire, salario, grade, stipendio,
        occupation, employer, arbeitgeber, employeur, werkgever, job title, beruf, profession, profesion,
        professione, zawod, beroep
        """),
    _concept("photo", "picture", """;
        photo, avatar, picture, foto, bild, signature, profile picture, portrait, image, unterschrift, scan
        """),
    _concept("place", "whereabouts", """;
        latitude, longitude, lat, lng, lon, geo, location, coordinates, standort, geolocation
        """),
    _concept("web", "personal page", """;
        website, homepage, facebook, twitter, linkedin, instagram, github, social, web, xing, url
        """, TEXT),
    _concept("free_text", "free text", """;
        note, notes, comment, comments, remark, remarks, description, body, message, text, content, bio,
        about, bemerkung, bemerkungen, notiz, notizen, kommentar, feedback, reason, memo, observaciones,
        remarques, summary, instructions, wishes, question, answer, subject line, beschreibung, transcript,
        nachricht, anmerkung, interests, hobbies, subject, details, betreff, reply, excerpt, remarque,
        commentaire, comentario, comentarios, observacion, motivo, nota, opis, uwagi, opmerking,
        opmerkingen, notitie, special requests, caption, freitext, verwendungszweck, verwzweck, vermerk
        """, TEXT),
    _concept("vehicle", "vehicle", """;
        plate, number plate, licence plate, license plate, reg plate, vehicle reg, car reg,
        registration plate, vin, kennzeichen, immatriculation, targa, matricula, kenteken
        """, TEXT),
    _concept("maker", "who made or changed it", """;
        created by, updated by, changed by, modified by, deleted by, inserted by, entered by, added by, made
        by, edited by, erstellt von, geaendert von, cree par, modifie par, creado por, modificado por
        """, TEXT, personal=False),
    _concept("moment", "a moment", """;
        at, on, date, time, datum, fecha, timestamp, created, updated, deleted, modified, since, until,
        from, to, von, bis, am, year, month, expires, last login, last seen, joined, day, uhrzeit, start,
        end, zeit, due, registered, annee, jour, heure, anno, giorno, fec, data, ano, horodatage, issued,
        expiry, dat, valuta, arrival, departure, arrived, opened, hired, check in, check out, termin,
        llegada, salida, arrivee, ouverture, beginn, ende
        """, frozenset({"date", "date and time", "number", "text", "time"}), personal=False),
    _concept("state", "a state or setting", """;
        status, state, type, kind, active, enabled, locale, language, languages, lang, sprache, currency,
        role, level, version, sort, count, qty, quantity, menge, rank, category, priority, timezone, time
        zone, flag, verified, confirmed, deleted flag, is active, opt in, optin, consent, newsletter, aktiv,
        rolle, score, stars, rating, waehrung, anzahl, plan, code, mode, method, step, tier, segment,
        source, channel, art, typ, estado, statut, position, visible, published, archived, closed, unit,
        einheit, blocked, gesperrt, attempts, action, event, approved, karma, actif, activo, attivo,
        cantidad, stato, rodzaj, tipo, theme, department, dept, abteilung
        """, personal=False),
    _concept("amount", "an amount", """;
        rent, deposit, premium, miete, kaution, gebuehr, huur, amount, total, price, tax, net, gross,
        discount, balance, credit, points, vat, betrag, summe, preis, netto, brutto, mwst, fee, cost,
        subtotal, cents, rate, montant, importe, rabatt, limit, steuer, hours, stunden, precio, prix,
        prezzo, kwota, bedrag, iva, tva, btw, ust, excl, incl, excl btw, incl btw
        """, personal=False),
    _concept("number", "a number given here", """;
        number, no, nr, invoice number, order number, nummer, numero, sku, ref, reference, barcode, slug,
        numer, num
        """, personal=False),
)  # fmt: skip
BY_WORD = {concept.word: concept for concept in CONCEPTS}
