-- A collaboration service: organisations that users share, things that belong to "whatever", a log of everything.
-- PostgreSQL. Everybody in it is invented.

CREATE TABLE django_content_type (id integer PRIMARY KEY, app_label varchar(100) NOT NULL, model varchar(100) NOT NULL, UNIQUE (app_label, model));
CREATE TABLE plans (code varchar(20) PRIMARY KEY, label varchar(60) NOT NULL, monthly numeric(8, 2) NOT NULL);

CREATE TABLE users (
  id bigint PRIMARY KEY,
  uuid uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
  email varchar(254) NOT NULL UNIQUE,
  email_lower text GENERATED ALWAYS AS (lower(email)) STORED,
  username varchar(40) NOT NULL UNIQUE,
  display_name varchar(120),
  password varchar(128) NOT NULL,
  totp_secret varchar(64),
  avatar_url text,
  bio text,
  locale varchar(10) NOT NULL DEFAULT 'en',
  settings jsonb NOT NULL DEFAULT '{}',
  is_superuser boolean NOT NULL DEFAULT false,
  invited_by_id bigint REFERENCES users,
  hubspot_contact_id varchar(40),
  intercom_user_id varchar(40),
  last_login_ip inet,
  last_login timestamptz,
  date_joined timestamptz NOT NULL
);

CREATE TABLE organisations (
  id bigint PRIMARY KEY,
  name varchar(120) NOT NULL,
  plan_code varchar(20) NOT NULL REFERENCES plans,
  owner_id bigint REFERENCES users,
  billing_email varchar(254),
  created_at timestamptz NOT NULL
);
CREATE TABLE memberships (
  user_id bigint NOT NULL REFERENCES users,
  organisation_id bigint NOT NULL REFERENCES organisations,
  role varchar(20) NOT NULL,
  invited_by bigint REFERENCES users,
  PRIMARY KEY (user_id, organisation_id)
);

-- The shared address book: entries belong to the organisation, whoever typed them.
CREATE TABLE contacts (
  id bigint PRIMARY KEY,
  organisation_id bigint NOT NULL REFERENCES organisations,
  created_by bigint REFERENCES users,
  full_name varchar(120) NOT NULL,
  email varchar(254),
  phone varchar(40),
  notes text
);

-- Only the topmost folder knows whose it is.
CREATE TABLE folders (
  id bigint PRIMARY KEY,
  owner_id bigint REFERENCES users,
  parent_id bigint REFERENCES folders,
  name varchar(120) NOT NULL
);
CREATE TABLE documents (
  id bigint PRIMARY KEY,
  owner_type varchar(20) NOT NULL,
  owner_id bigint NOT NULL,
  title varchar(200) NOT NULL,
  body text,
  updated_at timestamptz NOT NULL
);
CREATE TABLE comments (
  id bigint PRIMARY KEY,
  author_id bigint NOT NULL REFERENCES users,
  document_id bigint NOT NULL REFERENCES documents,
  parent_id bigint REFERENCES comments,
  body text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE TABLE attachments (
  id bigint PRIMARY KEY,
  attachable_type varchar(20) NOT NULL,
  attachable_id bigint NOT NULL,
  file_name varchar(200) NOT NULL,
  content bytea
);
CREATE TABLE tagged_items (
  id bigint PRIMARY KEY,
  content_type_id integer NOT NULL REFERENCES django_content_type,
  object_id varchar(40) NOT NULL,
  tag varchar(60) NOT NULL
);
CREATE TABLE messages (
  id bigint PRIMARY KEY,
  sender_id bigint NOT NULL REFERENCES users,
  recipient_id bigint NOT NULL REFERENCES users,
  body text NOT NULL,
  sent_at timestamptz NOT NULL
);
CREATE TABLE tasks (
  id bigint PRIMARY KEY,
  organisation_id bigint NOT NULL REFERENCES organisations,
  title varchar(200) NOT NULL,
  assignee_id bigint REFERENCES users,
  assignee_name varchar(120),
  created_by bigint NOT NULL REFERENCES users,
  due_on date
);
CREATE TABLE sessions (token varchar(64) PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, ip inet, user_agent text, expires_at timestamptz NOT NULL);
CREATE TABLE api_tokens (id bigint PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, token_hash varchar(64) NOT NULL UNIQUE, label varchar(60));
CREATE TABLE invitations (id bigint PRIMARY KEY, organisation_id bigint NOT NULL REFERENCES organisations, email varchar(254) NOT NULL, invited_by bigint NOT NULL REFERENCES users, accepted_at timestamptz);
CREATE TABLE invoices (id bigint PRIMARY KEY, organisation_id bigint NOT NULL REFERENCES organisations, number varchar(20) NOT NULL UNIQUE, total numeric(10, 2) NOT NULL, issued_on date NOT NULL);

-- No foreign key on purpose: the log must survive everything.
CREATE TABLE audit_log (
  id bigint PRIMARY KEY,
  at timestamptz NOT NULL,
  actor_id bigint,
  actor_email varchar(254),
  action varchar(60) NOT NULL,
  details text,
  payload jsonb
);

INSERT INTO django_content_type VALUES (3, 'auth', 'user'), (7, 'work', 'document'), (9, 'work', 'organisation');
INSERT INTO plans VALUES ('team', 'Team', 49);
INSERT INTO users (id, email, username, display_name, password, totp_secret, avatar_url, bio, settings, invited_by_id, hubspot_contact_id, last_login_ip, last_login, date_joined) VALUES
  (1, 'ana@acme.example', 'ana', 'Ana Ruiz', 'p$1', 's1', 'https://cdn.example/ana.png', 'Likes maps and long walks on weekends.', '{"theme": "dark", "profile": {"phone": "+34 5550101", "city": "Soria"}}', NULL, 'h-1', '192.0.2.1', '2026-02-01', '2024-01-01'),
  (2, 'bo@acme.example', 'bo', 'Bo Lind', 'p$2', NULL, NULL, NULL, '{"theme": "light"}', 1, NULL, '192.0.2.2', '2026-02-02', '2024-02-01'),
  (3, 'cy@solo.example', 'cy', NULL, 'p$3', NULL, NULL, NULL, '{}', NULL, 'h-3', NULL, NULL, '2025-05-05');
INSERT INTO organisations VALUES (1, 'Acme', 'team', 1, 'billing@acme.example', '2024-01-01'), (2, 'Solo', 'team', 3, NULL, '2025-05-05');
INSERT INTO memberships VALUES (1, 1, 'admin', NULL), (2, 1, 'member', 1), (3, 2, 'admin', NULL);
INSERT INTO contacts VALUES (1, 1, 1, 'Dora Dupont', 'dora@client.example', '+33 5550102', 'met at the fair'), (2, 1, 2, 'Emil Ek', NULL, NULL, NULL);
INSERT INTO folders VALUES (1, 1, NULL, 'Ana private'), (2, NULL, 1, 'Taxes'), (3, NULL, 2, '2025'), (4, 2, NULL, 'Bo');
INSERT INTO documents VALUES (1, 'User', 1, 'Diary', 'Dear diary, today I met Bo in the office.', '2026-01-01'), (2, 'Organisation', 1, 'Handbook', 'How we work.', '2026-01-02'), (3, 'User', 2, 'Ideas', NULL, '2026-01-03');
INSERT INTO comments VALUES (1, 1, 2, NULL, 'Is this still right?', '2026-01-04'), (2, 2, 2, 1, 'Yes, Ana, it is.', '2026-01-05'), (3, 2, 1, NULL, 'Nice diary', '2026-01-06');
INSERT INTO attachments VALUES (1, 'Document', 1, 'beach.jpg', '\x00'), (2, 'User', 1, 'passport.pdf', '\x00'), (3, 'Organisation', 1, 'logo.png', '\x00');
INSERT INTO tagged_items VALUES (1, 3, '1', 'vip'), (2, 3, '2', 'trial'), (3, 7, '2', 'official'), (4, 9, '1', 'big');
INSERT INTO messages VALUES (1, 1, 2, 'Lunch?', '2026-01-07'), (2, 2, 1, 'Sure, at noon.', '2026-01-07');
INSERT INTO tasks VALUES (1, 1, 'Write to Dora', 2, 'Bo Lind', 1, '2026-03-01'), (2, 1, 'Order chairs', 1, 'Ana Ruiz', 2, NULL);
INSERT INTO sessions VALUES ('t1', 1, '192.0.2.1', 'Firefox', '2026-12-01');
INSERT INTO api_tokens VALUES (1, 1, 'h1', 'laptop');
INSERT INTO invitations VALUES (1, 1, 'bo@acme.example', 1, '2024-02-01'), (2, 1, 'eve@other.example', 1, NULL);
INSERT INTO invoices VALUES (1, 1, 'S-1', 49, '2026-01-01');
INSERT INTO audit_log VALUES
  (1, '2026-01-01', 1, 'ana@acme.example', 'document.created', 'Ana Ruiz created Diary', '{"ip": "192.0.2.1", "after": {"title": "Diary"}}'),
  (2, '2026-01-05', 2, 'bo@acme.example', 'comment.created', 'Bo Lind answered Ana Ruiz on Handbook', '{"ip": "192.0.2.2"}');
