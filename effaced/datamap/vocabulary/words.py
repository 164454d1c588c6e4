"""What words in the names of tables and columns say, as lists, in the languages of `concepts.py`.

A phrase is written in lower case with blanks between its words; `names.py` says how names are split. To teach
the draft a new word, add it here.
"""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


# --- tables --------------------------------------------------------------------------------------------

# In plural too where the plural is not the word with an s.
PEOPLE = _words("""
customer client buyer shopper consumer guest member subscriber user person people patient student pupil
donor passenger traveller traveler visitor participant attendee applicant candidate player resident citizen
learner borrower claimant insured beneficiary voter policyholder kunde kunden kundin benutzer nutzer
mitglied mitglieder personen patienten gast gaeste schueler mieter teilnehmer utilisateur adherent abonne
personne eleve etudiant locataire membre assure cliente usuario paciente socio miembro persona alumno
huesped inquilino utente utenti clienti persone paziente pazienti soci studente studenti ospite ospiti
iscritto iscritti klant klanten gebruiker lid leden persoon leerling huurder patienten deelnemer klient
klienci uzytkownik uzytkownicy osoba osoby pacjent pacjenci uczen uczniowie czlonek czlonkowie pessoa aluno
utilizador hospede
""")

STAFF = _words("""
employee staff worker doctor physician nurse teacher driver operator admin administrator salesperson
technician therapist personnel colleague trainer lecturer professor instructor mitarbeiter angestellte
angestellter arzt aerzte lehrer fahrer employe salarie animateur enseignant medecin empleado trabajador
medico medewerker werknemer docent dipendente dipendenti impiegato pracownik pracownicy lekarz lekarze
nauczyciel funcionario courier dispatcher recruiter adjuster kurier livreur agent pharmacist dentist
consultant moderator inspector caseworker receptionist apotheker sachbearbeiter verkaeufer vertreter berater
""")

# People, if their columns say so too: an account may also be a bank's, a contact somebody's relative.
PERHAPS_PEOPLE = _words("""
account contact profile lead prospect konto kontakt compte cuenta contacto tenant
""")

# Of these, the ones that are somebody if they have an e-mail address.
THIRD_PARTIES = _words("contact lead prospect kontakt contacto")

# People whom others have to do with, and who hardly ever ask themselves.
STRANGERS = _words("""
landlord guarantor contractor referee witness heir guardian parent relative dependent carer caregiver
performer artist speaker next_of_kin vermieter buerge bevollmaechtigter ehepartner lebenspartner
angehoeriger angehoerige proprietaire garant avalista tutor verhuurder
""")

# billing_name, emergency_name: somebody's.
BEFORE_NAMES = _words("billing shipping emergency nok kin spouse mother father")

# Lists of those who get nothing: by their hashes they are still somebody.
REFUSED = _words("""
ban banned blacklist blacklisted blocklist denylist suppression suppressed unsubscribe unsubscribed optout
robinson sperrliste
""")

ADDRESSES = _words("""
address adresse adressen anschrift direccion domicilio indirizzo indirizzi adres adresy
""")

ORGANISATIONS = _words("""
organizer organiser promoter insurer insurance merchant publisher versicherer versicherung organisation
organization org company firm team tenant workspace department branch clinic club group supplier vendor
partner manufacturer store warehouse business institution agency household channel project room board broker
restaurant retailer distributor hotel school shop site venue sede depot facility building office station
firma abteilung filiale lieferant gruppe verein praxis societe entreprise fournisseur equipe groupe empresa
proveedor equipo grupo
""")

# In front of a column's name: the row is an organisation's, or somebody else's, and this is whom to ask for.
CONTACTS = _words("contact kontakt ansprechpartner ansprechp contacto contatto")

# What stands before or after the word that counts: tbl_customer, app_user, customer_master, kunden_stamm.
TABLE_PREFIXES = _words("tbl tab t app auth core my sys crm dbo ref old new legacy wp tb mst")
TABLE_SUFFIXES = _words(
    "table tbl data master mst info detail record list old new stamm daten v1 v2 archive account profile"
)
# A client of these is a program.
PROGRAMS = _words("oauth oauth2 oidc api http service app mqtt sso saml bot device")

FINANCIAL = _words("""
invoice payment order contract refund transaction booking receipt charge payout sale purchase reservation
shipment delivery return bill credit_note ledger quote rental policy rechnung rechnungen zahlung zahlungen
bestellung bestellungen auftrag auftraege vertrag vertraege buchung buchungen lieferung lieferungen lease
tenancy agreement mietvertrag mietvertraege gutschrift gutschriften mahnung mahnungen angebot facture
paiement commande contrat cotisation factura pago pedido contrato venta fattura fatture pagamento ordine
ordini contratto factuur facturen betaling bestelling faktura faktury platnosc zamowienie zamowienia umowa
umowy fatura
""")

TAXES = _words("tax vat mwst ust umsatzsteuer mehrwertsteuer steuer btw iva tva podatek")

# Of these, the ones that have to say to whom they went.
INVOICES = _words("""
invoice bill receipt credit_note rechnung rechnungen gutschrift facture factura fattura fatture factuur
faktura fatura
""")

MEDICAL = _words("""
diagnosis diagnose diagnoses diagnosen prescription treatment encounter vaccination immunization finding
anamnesis surgery admission befund befunde rezept rezepte behandlung behandlungen ordonnance receta
vital_sign vital medical_record health_record patient_record clinical_note lab_result lab_order lab_report
wizyta wizyty recepta recepty wynik_badan visita_medica ficha_medica
""")

EMPLOYMENT = _words("payslip payroll salary wage timesheet lohn gehalt gehaelter salaire nomina")

# Parts of a record that is kept: order_items, invoice_lines.
PARTS = _words("""
item line position detail entry row posten positionen zeile ligne linea riga pozycja regel tax discount
""")

LOGS = _words("""
log audit aud history event activity trail journal protokoll historie journal version revision logboek logbuch
aenderung aenderungen aend wijziging
""")

# At the end or the beginning of a table's name: it keeps what was in another.
COPIES = _words("""
aud audit history hist log archive archived version revision backup bak old copy snapshot shadow deleted
historie archiv kopie historical
""")

# What one has to say about another: who is accused may not simply take it away.
CASES = _words("""
complaint dispute incident abuse violation sanction warning moderation_action grievance beschwerde
beschwerden plainte queja klacht report
""")

# What is sent like letters: an e-mail's delivery is no delivery of goods.
LETTERS = _words("email mail sms push webhook message notification newsletter")

# Tables of tools, with nobody in them.
MACHINERY = _words("""
alembic_version schema_migrations ar_internal_metadata django_migrations django_content_type
flyway_schema_history knex_migrations _prisma_migrations migrations spatial_ref_sys sqlite_sequence
databasechangelog databasechangeloglock
""")

# Files that people have put somewhere; what points at them says whose they are.
FILES = _words("blob file upload image media asset picture photo scan datei bild")

# The last part of a German word: Bestelldatum is a Datum.
COMPOUND_HEADS = _words("datum nummer adresse betrag strasse telefon preis summe notiz bemerkung kommentar")

# --- columns that point ------------------------------------------------------------------------------

POINTER_ENDINGS = _words("""
id no nr num number key code ref uid uuid fk pk guid ident nummer kennung numero
""")
# The same in front: cod_cliente, id_pacjenta, num_adherent, fk_user.
POINTER_BEGINNINGS = _words("id cod codigo codice code kod num numero nro nr fk idx ref")

# The row is the one's who is named so.
OWNING_ROLES = _words("""
owner author sender creator submitter poster uploader writer holder buyer payer subscriber requester
requestor reporter applicant subject follower voter actor posted written uploaded submitted requested
authored ordered purchased reported raised filed sent booked commented asked rated voted liked owned held
rented borrowed hosted complainant blocker liker viewer booker autor auteur autore absender expediteur
remitente mittente afzender nadawca respondent
""")

# Of these, who set something off: a notification is the one's who gets it.
ACTING_ROLES = _words("actor")

# The row is somebody else's, or nobody's; it only names one who had to do with it.
MENTIONING_ROLES = _words("""
assignee assigned manager supervisor referrer referred approver approved reviewed modified updated changed
handled managed agent deleted processed invited inviter invitee rep representative responsible doctor
physician nurse teacher technician prescribed prescriber examined performed verified closed resolved locked
moderated moderator editor edited banned blocked boss lead leader head chief mentor sponsor coordinator
contact attending treating signed ordering served swapped replaced substitute deputy with cashier clerk
driver operator vorgesetzter betreuer bearbeiter to cc vendedor gestor tuteur whodunnit initiator causer
lecturer instructor examiner professor handler followee mentioned guardian tutor organiser organizer
convenor convener presenter speaker chair marker grader assessor invigilator
""")

# The row is theirs, unless it also names the one who sent it, or whom it is about.
RECEIVING_ROLES = _words(
    "recipient reviewer receiver addressee empfaenger destinataire destinatario odbiorca ontvanger"
)

# Who made a row may own it or not; other columns decide.
MAKING_ROLES = _words("created added entered inserted made erstellt angelegt cree creado")

# Rows that hang on rows of the same table.
# Of a pair that names a row anywhere: what says the table, what the row, and how a row is called there.
CLASSES = _words("""
type kind class model table tbl entity typ art klasse tab tabelle tabel tabla tabela tipo clase classe soort
""")
VAGUE_CLASSES = _words("type kind typ art tipo soort")
IDS_OF_CLASSES = _words("id key uuid guid ref no nr num pk")
THINGS = _words("record row object entity item model target ref")
# An id in one word, in other languages.
ROW_KEYS = _words("schluessel sleutel clave chave klucz cle pk")
TREE_ROLES = _words("parent root reply replied ancestor thread eltern vorgaenger padre")

# How words for people with a part in something end: followed_id, seller_id, mentee_id.
ROLE_ENDINGS = ("ed", "er", "or", "ee")

# Pointers that say which of the person's own rows is the chosen one.
CHOOSING = _words("""
last latest current default primary main previous next first active selected preferred
""")

# Other systems that know people by an id of their own.
SYSTEMS = _words("""
stripe paypal mailchimp hubspot salesforce crm zendesk intercom klaviyo braze sendgrid segment shopify auth0
okta google facebook apple github linkedin twitter microsoft azure twilio adyen mollie braintree klarna
datev sap erp freshdesk mixpanel amplitude chargebee recurly gocardless xero quickbooks helpdesk newsletter
brevo mailjet external ext sso oidc saml ldap keycloak cognito firebase onesignal payment loyalty
""")

# --- keys of JSON documents ------------------------------------------------------------------------------

# Besides the words for columns and people, those that the draft may repeat. Any other key might be a name.
CONTAINERS = _words("""
contact address billing shipping delivery customer user profile meta data payload before after old new
change person family emergency item result value detail history attribute extra info personal account main
home work relative guardian entry list object actor request response body form field answer note doctor
""")

# Words after the one that counts which change nothing: email_lower, phone_1, name_enc.
HARMLESS = _words("""
1 2 3 lower norm normalized normalised raw enc encrypted hash hashed alt secondary work home private
canonical clean search idx masked path uri url file filename
""")
