-- A group of clinics: patients and staff are both people, records must be kept, billing has a schema of its own.
-- PostgreSQL. Everybody in it is invented.

CREATE SCHEMA billing;

CREATE TABLE clinics (id integer PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE rooms (clinic_id integer NOT NULL REFERENCES clinics, room_no text NOT NULL, floor integer, PRIMARY KEY (clinic_id, room_no));

CREATE TYPE sex AS ENUM ('f', 'm', 'x', 'unknown');

CREATE TABLE staff (
  staff_no integer PRIMARY KEY,
  login text NOT NULL UNIQUE,
  given_name text NOT NULL,
  family_name text NOT NULL,
  full_name text GENERATED ALWAYS AS (given_name || ' ' || family_name) STORED,
  work_email text NOT NULL UNIQUE,
  private_phone text,
  date_of_birth date NOT NULL,
  tax_id text UNIQUE,
  job_title text,
  manager_no integer REFERENCES staff,
  photo bytea,
  hired_on date NOT NULL,
  left_on date
);

-- Each clinic counts its patients from one.
CREATE TABLE patients (
  clinic_id integer NOT NULL REFERENCES clinics,
  patient_no integer NOT NULL,
  first_name text NOT NULL,
  last_name text NOT NULL,
  birth_date date NOT NULL,
  sex sex NOT NULL DEFAULT 'unknown',
  insurance_no varchar(20) UNIQUE,
  email text,
  phone text,
  street text,
  postcode text,
  city text,
  religion text,
  blood_type text,
  allergies text[],
  family_doctor text,
  treating_staff_no integer REFERENCES staff,
  registered_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (clinic_id, patient_no)
);

-- Parents, spouses, neighbours: people who never came here themselves.
CREATE TABLE contact_persons (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  name text NOT NULL,
  relationship text,
  phone text NOT NULL,
  may_be_told boolean NOT NULL DEFAULT false,
  FOREIGN KEY (clinic_id, patient_no) REFERENCES patients
);

CREATE TABLE appointments (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  staff_no integer NOT NULL REFERENCES staff,
  room_no text,
  starts_at timestamptz NOT NULL,
  reason text,
  reminder_sent_to text,
  FOREIGN KEY (clinic_id, patient_no) REFERENCES patients,
  FOREIGN KEY (clinic_id, room_no) REFERENCES rooms
);

CREATE TABLE medical_records (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  author_no integer NOT NULL REFERENCES staff (staff_no),
  appointment_id bigint REFERENCES appointments,
  diagnosis text,
  findings text NOT NULL,
  recorded_at timestamptz NOT NULL,
  FOREIGN KEY (clinic_id, patient_no) REFERENCES patients
);
CREATE TABLE prescriptions (
  record_id bigint NOT NULL REFERENCES medical_records,
  line smallint NOT NULL,
  drug text NOT NULL,
  dosage text,
  prescribed_by integer NOT NULL REFERENCES staff,
  PRIMARY KEY (record_id, line)
);
-- The laboratory's system writes here; it knows patients by both numbers but declares nothing.
CREATE TABLE lab_results (
  sample_no text PRIMARY KEY,
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  taken_at timestamptz NOT NULL,
  result jsonb NOT NULL
);
CREATE TABLE waiting_list (
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  since date NOT NULL,
  wishes jsonb,
  FOREIGN KEY (clinic_id, patient_no) REFERENCES patients
);

CREATE TABLE vital_signs (
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  measured_at timestamptz NOT NULL,
  pulse integer,
  temperature numeric(4, 1),
  FOREIGN KEY (clinic_id, patient_no) REFERENCES patients
) PARTITION BY RANGE (measured_at);
CREATE TABLE vital_signs_2025 PARTITION OF vital_signs FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE vital_signs_2026 PARTITION OF vital_signs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');

CREATE TABLE absences (id integer PRIMARY KEY, staff_no integer NOT NULL REFERENCES staff, from_day date NOT NULL, to_day date, reason text);
CREATE TABLE payslips (staff_no integer NOT NULL REFERENCES staff, month date NOT NULL, gross numeric(10, 2) NOT NULL, iban text NOT NULL, PRIMARY KEY (staff_no, month));
CREATE TABLE shifts (staff_no integer NOT NULL REFERENCES staff, day date NOT NULL, clinic_id integer NOT NULL REFERENCES clinics, swapped_with integer REFERENCES staff, PRIMARY KEY (staff_no, day));

CREATE TABLE billing.invoices (
  number text PRIMARY KEY,
  clinic_id integer NOT NULL,
  patient_no integer NOT NULL,
  billed_to text NOT NULL,
  total numeric(10, 2) NOT NULL,
  issued_on date NOT NULL,
  note text,
  FOREIGN KEY (clinic_id, patient_no) REFERENCES public.patients
);
CREATE TABLE billing.reminders (id integer PRIMARY KEY, invoice_number text NOT NULL REFERENCES billing.invoices, sent_on date NOT NULL, sent_to_email text);
CREATE TABLE billing.tariffs (code text PRIMARY KEY, label text NOT NULL, price numeric(10, 2) NOT NULL);

CREATE VIEW todays_patients AS SELECT p.last_name, a.starts_at FROM patients p JOIN appointments a USING (clinic_id, patient_no);

INSERT INTO clinics VALUES (1, 'North', 'Bergen'), (2, 'South', 'Lund');
INSERT INTO rooms VALUES (1, 'A1', 0), (1, 'A2', 0), (2, 'A1', 1);
INSERT INTO staff (staff_no, login, given_name, family_name, work_email, private_phone, date_of_birth, tax_id, job_title, manager_no, hired_on) VALUES
  (10, 'rvik', 'Runa', 'Vik', 'runa.vik@clinic.example', '+47 5550100', '1970-02-01', 'T-10', 'chief physician', NULL, '2001-01-01'),
  (11, 'jdal', 'Jon', 'Dal', 'jon.dal@clinic.example', NULL, '1988-09-09', 'T-11', 'physician', 10, '2015-04-01'),
  (12, 'eeng', 'Eli', 'Eng', 'eli.eng@clinic.example', '+47 5550102', '1995-12-24', NULL, 'nurse', 11, '2020-08-15');
INSERT INTO patients (clinic_id, patient_no, first_name, last_name, birth_date, sex, insurance_no, email, phone, street, postcode, city, religion, blood_type, allergies, family_doctor, treating_staff_no) VALUES
  (1, 1, 'Liv', 'Berg', '1961-03-03', 'f', 'N100', 'liv@berg.example', '+47 5550111', 'Kaigate 1', '5003', 'Bergen', NULL, 'A+', '{nuts}', 'Dr Foss', 10),
  (1, 2, 'Per', 'Lie', '1950-07-07', 'm', 'N200', NULL, '+47 5550122', 'Torget 2', '5014', 'Bergen', 'quaker', '0-', '{}', NULL, 11),
  (2, 1, 'Siv', 'Ek', '2015-10-10', 'f', NULL, 'parents@ek.example', '+46 5550133', 'Stortorget 9', '22223', 'Lund', NULL, NULL, NULL, 'Dr Foss', 11);
INSERT INTO contact_persons (clinic_id, patient_no, name, relationship, phone, may_be_told) VALUES (1, 1, 'Odd Berg', 'husband', '+47 5550112', true), (2, 1, 'Mona Ek', 'mother', '+46 5550134', true);
INSERT INTO appointments (clinic_id, patient_no, staff_no, room_no, starts_at, reason, reminder_sent_to) VALUES
  (1, 1, 10, 'A1', '2025-05-05 09:00+00', 'pain in the left knee', 'liv@berg.example'), (1, 2, 11, 'A2', '2025-06-06 10:00+00', NULL, NULL), (2, 1, 11, 'A1', '2026-01-07 11:00+00', 'check', 'parents@ek.example');
INSERT INTO medical_records (clinic_id, patient_no, author_no, appointment_id, diagnosis, findings, recorded_at) VALUES
  (1, 1, 10, 1, 'M23.5', 'Knee is unstable, patient reports a fall on ice.', '2025-05-05 09:40+00'), (2, 1, 11, 3, NULL, 'Healthy child, mother present.', '2026-01-07 11:20+00');
INSERT INTO prescriptions VALUES (1, 1, 'Ibuprofen', '400 mg', 10);
INSERT INTO lab_results VALUES
  ('S-1', 1, 1, '2025-05-06 07:00+00', '{"patient": {"name": "Liv Berg", "birth_date": "1961-03-03"}, "values": [{"code": "CRP", "value": 3}], "comment": "fasting"}'),
  ('S-2', 1, 2, '2025-06-07 07:00+00', '{"patient": {"name": "Per Lie", "birth_date": "1950-07-07"}, "values": [{"code": "HB", "value": 14}]}');
INSERT INTO waiting_list VALUES (1, 2, '2026-01-01', '{"days": ["Mon"], "contact": {"phone": "+47 5550122"}}');
INSERT INTO vital_signs VALUES (1, 1, '2025-05-05 09:10+00', 72, 36.6), (2, 1, '2026-01-07 11:05+00', 90, 36.9);
INSERT INTO absences VALUES (1, 12, '2025-10-01', '2025-10-09', 'operation');
INSERT INTO payslips VALUES (10, '2026-01-01', 9100, 'NO9386011117947'), (11, '2026-01-01', 7200, 'NO5486011117948');
INSERT INTO shifts VALUES (11, '2026-02-01', 1, 12), (12, '2026-02-02', 1, NULL);
INSERT INTO billing.invoices VALUES ('B-1', 1, 1, 'Liv Berg, Kaigate 1, 5003 Bergen', 120, '2025-05-31', 'paid in cash by her husband'), ('B-2', 2, 1, 'Mona Ek, Stortorget 9, 22223 Lund', 80, '2026-01-31', NULL);
INSERT INTO billing.reminders VALUES (1, 'B-2', '2026-03-01', 'parents@ek.example');
INSERT INTO billing.tariffs VALUES ('T1', 'consultation', 80);
