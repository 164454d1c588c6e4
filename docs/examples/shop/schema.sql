-- A web shop that has grown for fifteen years. The new half has foreign keys, the old half has habits.
-- Runs on PostgreSQL and on SQLite. Everybody in it is invented.

CREATE TABLE countries (code char(2) PRIMARY KEY, name varchar(60) NOT NULL);

-- Shared: a household orders to one address, and orders point at it too.
CREATE TABLE addresses (
  id integer PRIMARY KEY,
  recipient varchar(120),
  street varchar(120) NOT NULL,
  zip varchar(12) NOT NULL,
  city varchar(80) NOT NULL,
  country_code char(2) NOT NULL REFERENCES countries (code)
);

CREATE TABLE customers (
  id integer PRIMARY KEY,
  customer_no varchar(12) NOT NULL UNIQUE,
  email varchar(120) NOT NULL UNIQUE,
  first_name varchar(60) NOT NULL,
  last_name varchar(60) NOT NULL,
  phone varchar(40),
  birth_date date,
  password_hash varchar(100) NOT NULL,
  default_address_id integer REFERENCES addresses (id),
  referred_by integer REFERENCES customers (id),
  stripe_customer_id varchar(40),
  mailchimp_id varchar(40),
  segment varchar(20),
  marketing_opt_in boolean NOT NULL DEFAULT false,
  preferences text,
  last_login_at timestamp,
  created_at timestamp NOT NULL
);

CREATE TABLE categories (id integer PRIMARY KEY, name varchar(60) NOT NULL, parent_id integer REFERENCES categories (id));
CREATE TABLE products (
  id integer PRIMARY KEY,
  sku varchar(30) NOT NULL UNIQUE,
  name varchar(120) NOT NULL,
  description text,
  price numeric(10, 2) NOT NULL,
  category_id integer REFERENCES categories (id)
);

-- Guests order without an account: customer_id is empty, the e-mail address is all there is.
CREATE TABLE orders (
  id integer PRIMARY KEY,
  order_no varchar(20) NOT NULL UNIQUE,
  customer_id integer REFERENCES customers (id),
  email varchar(120) NOT NULL,
  billing_address_id integer NOT NULL REFERENCES addresses (id),
  shipping_address_id integer REFERENCES addresses (id),
  status varchar(20) NOT NULL,
  total numeric(10, 2) NOT NULL,
  ip_address varchar(45),
  customer_note text,
  ordered_at timestamp NOT NULL
);
CREATE TABLE order_items (
  order_id integer NOT NULL REFERENCES orders (id),
  line integer NOT NULL,
  product_id integer NOT NULL REFERENCES products (id),
  quantity integer NOT NULL,
  price numeric(10, 2) NOT NULL,
  engraving varchar(80),
  PRIMARY KEY (order_id, line)
);
CREATE TABLE invoices (
  id integer PRIMARY KEY,
  number varchar(20) NOT NULL UNIQUE,
  order_id integer NOT NULL REFERENCES orders (id),
  buyer_name varchar(120) NOT NULL,
  buyer_address varchar(250) NOT NULL,
  vat_id varchar(20),
  net numeric(10, 2) NOT NULL,
  vat numeric(10, 2) NOT NULL,
  issued_on date NOT NULL
);
CREATE TABLE payments (
  id integer PRIMARY KEY,
  invoice_id integer NOT NULL REFERENCES invoices (id),
  method varchar(20) NOT NULL,
  amount numeric(10, 2) NOT NULL,
  iban varchar(34),
  account_holder varchar(120),
  paid_at timestamp NOT NULL
);

CREATE TABLE carts (id integer PRIMARY KEY, customer_id integer REFERENCES customers (id), session_key varchar(64), updated_at timestamp);
CREATE TABLE cart_items (cart_id integer NOT NULL REFERENCES carts (id), product_id integer NOT NULL REFERENCES products (id), quantity integer NOT NULL, PRIMARY KEY (cart_id, product_id));
CREATE TABLE product_reviews (
  id integer PRIMARY KEY,
  product_id integer NOT NULL REFERENCES products (id),
  customer_id integer NOT NULL REFERENCES customers (id),
  display_name varchar(60),
  stars integer NOT NULL,
  body text
);

-- The old half. No foreign keys; whoever wrote it is gone.
CREATE TABLE newsletter (email varchar(120) PRIMARY KEY, subscribed_at timestamp NOT NULL, source varchar(30), confirm_ip varchar(45));
CREATE TABLE tbl_cust_notes (note_id integer PRIMARY KEY, cust_no varchar(12) NOT NULL, txt text NOT NULL, entered varchar(10));
CREATE TABLE tbl_returns (
  ret_id integer PRIMARY KEY,
  "customerNo" varchar(12) NOT NULL,
  "orderNo" varchar(20) NOT NULL,
  reason varchar(250),
  bank_details varchar(60),
  received date NOT NULL
);
CREATE TABLE tbl_callbacks (id integer PRIMARY KEY, who varchar(80), nbr varchar(40), wanted timestamp, done boolean);
CREATE TABLE suppliers (id integer PRIMARY KEY, company varchar(120) NOT NULL, contact_name varchar(120), contact_email varchar(120));
CREATE TABLE stock_moves (id integer PRIMARY KEY, product_id integer NOT NULL, delta integer NOT NULL, moved_at timestamp NOT NULL);
CREATE TABLE schema_migrations (version varchar(20) PRIMARY KEY);

INSERT INTO countries VALUES ('AT', 'Austria'), ('DE', 'Germany');
INSERT INTO addresses VALUES
  (1, 'Ida Nord', 'Lange Gasse 4', '1080', 'Vienna', 'AT'),
  (2, 'Ole and Mia Sund', 'Hafenstr. 12', '20457', 'Hamburg', 'DE'),
  (3, 'Guest Gustavo', 'Ringweg 1', '04109', 'Leipzig', 'DE');
INSERT INTO customers VALUES
  (1, 'C-0001', 'ida@nord.example', 'Ida', 'Nord', '+43 1 5550101', '1984-05-17', 'x$1', 1, NULL, 'cus_1', 'mc1', 'gold', true, 'sends birthday cards to the office, likes tea', '2026-01-04 10:00:00', '2019-03-01 09:00:00'),
  (2, 'C-0002', 'ole@sund.example', 'Ole', 'Sund', NULL, NULL, 'x$2', 2, 1, NULL, NULL, 'new', false, NULL, NULL, '2021-07-11 12:30:00'),
  (3, 'C-0003', 'mia@sund.example', 'Mia', 'Sund', '+49 40 5550133', '1990-11-02', 'x$3', 2, 2, 'cus_3', 'mc3', 'new', true, NULL, '2026-02-01 08:15:00', '2022-02-14 19:00:00');
INSERT INTO categories VALUES (1, 'Kitchen', NULL), (2, 'Cups', 1);
INSERT INTO products VALUES (1, 'CUP-1', 'Cup with your name', 'A cup.', 12.00, 2), (2, 'POT-1', 'Tea pot', NULL, 48.00, 1);
INSERT INTO orders VALUES
  (1, 'O-1001', 1, 'ida@nord.example', 1, NULL, 'paid', 60.00, '192.0.2.10', 'ring twice, the bell is broken', '2025-11-02 10:00:00'),
  (2, 'O-1002', 3, 'mia@sund.example', 2, 2, 'paid', 12.00, '192.0.2.77', NULL, '2025-12-01 18:20:00'),
  (3, 'O-1003', NULL, 'gustavo@guest.example', 3, 3, 'paid', 48.00, '198.51.100.4', NULL, '2026-01-15 11:11:00'),
  (4, 'O-1004', NULL, 'ole@sund.example', 2, 2, 'open', 12.00, NULL, NULL, '2026-02-20 21:00:00');
INSERT INTO order_items VALUES (1, 1, 1, 1, 12.00, 'IDA'), (1, 2, 2, 1, 48.00, NULL), (2, 1, 1, 1, 12.00, 'MIA'), (3, 1, 2, 1, 48.00, NULL), (4, 1, 1, 1, 12.00, 'OLE');
INSERT INTO invoices VALUES
  (1, 'R-2025-1', 1, 'Ida Nord', 'Lange Gasse 4, 1080 Vienna', NULL, 50.00, 10.00, '2025-11-02'),
  (2, 'R-2025-2', 2, 'Mia Sund', 'Hafenstr. 12, 20457 Hamburg', NULL, 10.00, 2.00, '2025-12-01'),
  (3, 'R-2026-1', 3, 'Gustavo Gast', 'Ringweg 1, 04109 Leipzig', NULL, 40.00, 8.00, '2026-01-15');
INSERT INTO payments VALUES (1, 1, 'transfer', 60.00, 'AT611904300234573201', 'Ida Nord', '2025-11-05 00:00:00'), (2, 2, 'card', 12.00, NULL, NULL, '2025-12-01 18:21:00'), (3, 3, 'card', 48.00, NULL, NULL, '2026-01-15 11:12:00');
INSERT INTO carts VALUES (1, 1, 'k1', '2026-02-01 00:00:00'), (2, NULL, 'k2', '2026-02-02 00:00:00');
INSERT INTO cart_items VALUES (1, 2, 1), (2, 1, 3);
INSERT INTO product_reviews VALUES (1, 1, 1, 'Ida N.', 5, 'Lovely cup, my sister wants one too.'), (2, 1, 3, NULL, 4, 'Good, but the handle is small for me.');
INSERT INTO newsletter VALUES ('ida@nord.example', '2019-03-01 09:05:00', 'checkout', '192.0.2.10'), ('nobody@else.example', '2020-01-01 00:00:00', 'fair', NULL), ('mia@sund.example', '2022-02-14 19:05:00', 'checkout', '192.0.2.77');
INSERT INTO tbl_cust_notes VALUES (1, 'C-0001', 'called about the broken bell', 'HK'), (2, 'C-0002', 'wants to be called after six', 'HK');
INSERT INTO tbl_returns VALUES (1, 'C-0003', 'O-1002', 'handle came off', 'DE89370400440532013000', '2025-12-20');
INSERT INTO tbl_callbacks VALUES (1, 'Mrs Nord', '+43 1 5550101', '2024-05-01 10:00:00', true);
INSERT INTO suppliers VALUES (1, 'Clay and Sons', 'Peter Clay', 'peter@clay.example');
INSERT INTO stock_moves VALUES (1, 1, 100, '2025-01-01 00:00:00'), (2, 1, -1, '2025-11-02 10:00:00');
INSERT INTO schema_migrations VALUES ('20250101');
