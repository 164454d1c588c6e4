"""`draft_map`: whose rows are whose, where a table points at several people or kinds of people."""

from __future__ import annotations

from read_draft import drafted, review

CANDIDATES = (
    "CREATE TABLE candidates (id integer PRIMARY KEY, email varchar(60) UNIQUE, last_name varchar(40))"
)
EMPLOYEES = "CREATE TABLE employees (id integer PRIMARY KEY, first_name varchar(40), last_name varchar(40))"
THREE_OF_EACH = (
    "INSERT INTO candidates VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B'), (3, 'c@x.example', 'C')",
    "INSERT INTO employees VALUES (1, 'A', 'A'), (2, 'B', 'B'), (3, 'C', 'C')",
)


def test_a_pair_of_class_and_id_leads_to_customers_and_staff_alike(company):
    told = drafted(
        company,
        CANDIDATES,
        EMPLOYEES,
        *THREE_OF_EACH,
        "CREATE TABLE attachments (id integer PRIMARY KEY, owner_type varchar(20) NOT NULL,"
        " owner_id integer NOT NULL, filename varchar(40))",
        "INSERT INTO attachments VALUES (1, 'Candidate', 1, 'cv'), (2, 'Employee', 2, 'contract')",
    )
    assert told["tables"]["attachments"]["link"] == [
        {"to": "candidates", "on": {"owner_id": "id"}, "where": {"owner_type": "Candidate"}},
        {"to": "employees", "on": {"owner_id": "id"}, "where": {"owner_type": "Employee"}},
    ]


def test_a_number_that_fits_two_kinds_of_people_is_for_a_person_to_decide(company):
    told = drafted(
        company,
        CANDIDATES,
        EMPLOYEES,
        *THREE_OF_EACH,
        "CREATE TABLE uploads (id integer PRIMARY KEY, author_id integer, body varchar(90))",
        "INSERT INTO uploads VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, 'z')",
    )
    assert "keys of employees as well" in review(told["tables"]["uploads"]["columns"]["author_id"])


def test_what_staff_take_part_in_is_still_the_one_s_it_is_about(company):
    told = drafted(
        company,
        CANDIDATES,
        EMPLOYEES,
        "CREATE TABLE applications (id integer PRIMARY KEY, candidate_id int NOT NULL REFERENCES candidates)",
        "CREATE TABLE interviews (id integer PRIMARY KEY, application_id integer REFERENCES applications,"
        " attendees varchar(200))",
        "CREATE TABLE panel (interview_id integer REFERENCES interviews, employee_id integer REFERENCES"
        " employees, PRIMARY KEY (interview_id, employee_id))",
        "CREATE TABLE scorecards (id integer PRIMARY KEY, interview_id int NOT NULL REFERENCES interviews,"
        " author_id integer NOT NULL REFERENCES employees, concerns varchar(200))",
    )
    assert told["tables"]["interviews"]["link"] == {"to": "applications", "on": {"application_id": "id"}}
    assert told["tables"]["scorecards"]["link"] == {"to": "interviews", "on": {"interview_id": "id"}}


def test_a_notification_is_the_one_s_who_gets_it(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60))",
        "CREATE TABLE notifications (id integer PRIMARY KEY, recipient_id integer REFERENCES users,"
        " actor_id integer REFERENCES users, payload varchar(90))",
    )
    notes = told["tables"]["notifications"]
    assert notes["link"] == {"to": "users", "on": {"recipient_id": "id"}}
    assert [each["on"] for each in notes["mentions"]] == [{"actor_id": "id"}]


def test_whom_else_a_kept_contract_covers_is_left_alone(company):
    told = drafted(
        company,
        "CREATE TABLE customers (id integer PRIMARY KEY, email varchar(60) UNIQUE, last_name varchar(40))",
        "CREATE TABLE policies (no varchar(20) PRIMARY KEY, holder_id integer NOT NULL REFERENCES customers)",
        "CREATE TABLE insured_persons (no varchar(20) REFERENCES policies, customer_id integer REFERENCES"
        " customers, smoker varchar(1), PRIMARY KEY (no, customer_id))",
    )
    assert told["tables"]["insured_persons"]["link"] == {"to": "customers", "on": {"customer_id": "id"}}


def test_a_broker_of_many_customers_is_no_one_customer_s(company):
    told = drafted(
        company,
        CANDIDATES,
        "CREATE TABLE helpers (id integer PRIMARY KEY, mail_box varchar(60), email varchar(60), phone text)",
        "CREATE TABLE contracts (id integer PRIMARY KEY, candidate_id int NOT NULL REFERENCES candidates,"
        " helper_id integer REFERENCES helpers)",
        *THREE_OF_EACH[:1],
        "INSERT INTO helpers VALUES (7, 'x', 'h@x.example', '+49 30 1234567')",
        "INSERT INTO contracts VALUES (1, 1, 7), (2, 2, 7), (3, 3, 7)",
    )
    assert "email, phone look personal" in told["review"]["helpers"]


def test_a_shop_that_people_like_is_not_theirs_though_it_has_a_bank_account(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60))",
        "CREATE TABLE merchants (id integer PRIMARY KEY, street text, city text, zip text, iban varchar(34))",
        "CREATE TABLE favourites (user_id integer REFERENCES users, merchant_id integer REFERENCES merchants,"
        " PRIMARY KEY (user_id, merchant_id))",
    )
    assert "not_personal if it is about organisations" in told["review"]["merchants"]


def test_whereabouts_are_no_part_of_an_order_that_is_kept(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60))",
        "CREATE TABLE orders (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users)",
        "CREATE TABLE trip_points (order_id integer REFERENCES orders, seq integer, lat real, lng real,"
        " PRIMARY KEY (order_id, seq))",
    )
    assert told["tables"]["trip_points"]["columns"]["seq"] == "delete"


def test_what_is_called_after_staff_is_theirs(company):
    told = drafted(
        company,
        CANDIDATES,
        "CREATE TABLE couriers (id integer PRIMARY KEY, full_name varchar(60), email varchar(60) UNIQUE)",
        "CREATE TABLE courier_documents (id integer PRIMARY KEY, courier_id integer REFERENCES couriers,"
        " kind varchar(20))",
        "CREATE TABLE tours (id integer PRIMARY KEY, courier_id integer REFERENCES couriers)",
    )
    assert told["tables"]["courier_documents"]["link"] == {"to": "couriers", "on": {"courier_id": "id"}}
    assert "link" not in told["tables"]["tours"]


def test_who_made_what_every_row_says_is_an_organisation_s_owns_nothing(company):
    told = drafted(
        company,
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60))",
        "CREATE TABLE organisations (id integer PRIMARY KEY, plan varchar(10))",
        "CREATE TABLE webhooks (id integer PRIMARY KEY, org_id integer REFERENCES organisations,"
        " created_by integer REFERENCES users, secret varchar(40))",
        "INSERT INTO organisations VALUES (1, 'pro')",
        "INSERT INTO webhooks VALUES (1, 1, NULL, 'x')",
    )
    assert "link" not in told["tables"]["webhooks"]
    assert "looks personal" in review(told["tables"]["webhooks"]["columns"]["secret"])


def test_a_doubtful_pointer_owns_nothing_beside_a_sure_one(company):
    told = drafted(
        company,
        CANDIDATES,
        EMPLOYEES,
        *THREE_OF_EACH,
        "CREATE TABLE audit_log (id integer PRIMARY KEY, actor_id integer, entity varchar(20),"
        " entity_id integer)",
        "INSERT INTO audit_log VALUES (1, 1, 'candidate', 2), (2, 2, 'candidate', 3), (3, 3, 'job', 1)",
    )
    link = told["tables"]["audit_log"]["link"]
    assert (link["on"], link["where"]) == ({"entity_id": "id"}, {"entity": "candidate"})
    assert "keys of employees as well" in review(told["tables"]["audit_log"]["columns"]["actor_id"])


def test_a_link_that_leads_to_others_than_the_row_names_is_for_a_person_to_decide(company):
    tables = (
        "CREATE TABLE users (id integer PRIMARY KEY, email varchar(60) UNIQUE, name varchar(60))",
        "CREATE TABLE posts (id integer PRIMARY KEY, author_id integer NOT NULL REFERENCES users, body text)",
        "CREATE TABLE comments (id integer PRIMARY KEY, post_id integer NOT NULL REFERENCES posts,"
        " author_id integer NOT NULL REFERENCES users, body text)",
        "CREATE TABLE drafts (id integer PRIMARY KEY, post_id integer NOT NULL REFERENCES posts,"
        " author_id integer NOT NULL REFERENCES users, body text)",
        "INSERT INTO users VALUES (1, 'a@x.example', 'A'), (2, 'b@x.example', 'B')",
        "INSERT INTO posts VALUES (1, 1, 'x')",
        "INSERT INTO comments VALUES (1, 1, 2, 'x'), (2, 1, 2, 'y'), (3, 1, 2, 'z')",
        "INSERT INTO drafts VALUES (1, 1, 1, 'x'), (2, 1, 1, 'y'), (3, 1, 1, 'z')",
    )
    told = drafted(company, *tables)
    assert "would take these rows along" in review(told["tables"]["comments"]["columns"]["post_id"])
    assert told["tables"]["drafts"]["columns"]["post_id"] == "delete"


def test_mail_in_a_queue_is_the_one_s_it_goes_to(company):
    told = drafted(
        company,
        CANDIDATES,
        *THREE_OF_EACH[:1],
        "CREATE TABLE email_queue (id integer PRIMARY KEY, to_addr varchar(60), html varchar(200))",
        "INSERT INTO email_queue VALUES (1, 'a@x.example', '-')",
    )
    assert told["tables"]["email_queue"]["link"] == {"to": "candidates", "on": {"to_addr": "email"}}
