"""What people type. None of the ordinary ones may begin a run, whatever tool comes next."""

ORDINARY = """
write unit tests for the login function
add a test for the login flow
fix the failing test in test_login.py
how do I test the login flow?
what does the login flow scenario do?
explain how the UAT module works
refactor the scenario loader in the uat package
the acceptance test fails in CI, please fix it
don't run the UAT yet, I still change the form
do not test the login flow now
we should write an end-to-end test for checkout one day
why is the checkout flow so slow?
rename login-flow.yaml to signin-flow.yaml
update the docs of the login flow
the login flow is broken, find out why
open the login page and tell me what the button says
take a screenshot of the landing page
go to localhost:3000 and look at the header
check why the browser console shows an error on the login page
run the unit tests
run pytest for the login flow
run npm test
run the tests
run the test suite and fix what fails
run the linter and the type checker
run the migration
run the dev server
run the login-flow unit tests with jest
please run the tests in tests/e2e/login.spec.ts
execute the script in scripts/login_flow.sh
execute the SQL in migrations/004.sql
start the server
start a new branch for the checkout work
begin with the database schema
perform a code review of the login flow
do a security review of the checkout
verify that the types compile
verify the migration works on an empty database
validate the YAML of the scenario file
validate the input of the login form on the server
check the login handler for SQL injection
check the scenario file for typos
check if the tests pass
make sure the tests pass
make sure the login flow handles expired tokens
try to make the checkout faster
try a different approach
test
testing
testing 123
this is a test
is this tested?
are there tests for the login flow?
do we have a UAT scenario for checkout?
should we test the login flow in the browser or with unit tests?
can the checkout flow be tested without a browser?
which scenarios exist?
list the scenarios
show me the UAT report of yesterday
summarise the last UAT run
delete the old UAT screenshots
what went wrong in the last UAT run?
the UAT environment is down, what can we do?
deploy to the UAT environment
configure the UAT database connection string
merge the uat branch into main
create a UAT plan for the checkout
draft acceptance criteria for the login story
write acceptance tests for the login flow
generate playwright tests for the checkout flow
add a playwright config
install playwright and chromium
upgrade @playwright/mcp to the latest version
implement the login flow
implement the checkout scenario from the design doc
build a login page with a form and a submit button
style the login page like the checkout page
move the login form into its own component
the user story says that a login needs two factors; implement it
document the happy path of the checkout
draw a diagram of the login flow
trace the login flow through the code
walk me through the login flow in the code
explain the login flow step by step
look at the login flow and suggest improvements
review my changes to the login flow
debug the login flow
investigate the flaky checkout test
speed up the checkout tests
mock the login flow in the tests
skip the login flow test for now
remove the login scenario from the registry
port the login flow to TypeScript
translate the login page into German
add logging to the login flow
add a screenshot to the README
use the browser tool to find the API docs of stripe
search the web for how to test login flows
if you have time, test the login flow later
when the build is green, deploy it
once the form works we test the login flow together
I tested the login flow yesterday and it worked
she said the login flow test is red
the tester will run the login flow scenario tomorrow
before you commit, run the tests
commit and push
revert the last commit on the checkout flow
write a script that tests the login flow with curl
write a UAT scenario for the signup flow
edit uat/scenarios/login-flow.yaml and add a step for logout
add an assertion to the login-flow scenario
the login-flow scenario needs a health check
change expected_ms of step 2 in login-flow
`test the login flow` is what the button in the docs says
Explain this log: "run the UAT for login-flow" printed twice
print("test the login flow")
verify that the login flow handles expired tokens
test whether the login flow leaks memory
walk through the login flow in the code and explain it
test the login flow API with curl
test the checkout endpoint
test my patience
run through the checkout code with me
confirm that the login flow is documented
validate the scenario schema against the spec
go through the review comments
Make the login flow use OAuth
I want to test something: set the timeout to 5 seconds
please check the flow of data between the services
run git status
do the login flow refactoring now
start working on the checkout flow
let's discuss the login flow
test coverage for checkout is low, raise it
Please try to reproduce the bug in the checkout flow
verify my understanding of the login flow
open the browser and go to the login page
use playwright to scrape the login page
take screenshots of the checkout flow for the docs
go through the checkout flow and list all API calls it makes
do a dry run of the checkout flow migration
check the checkout flow for accessibility problems
can you test the performance of the login flow with k6?
Please run through the login flow logs
run the login flow benchmark
test the login flow function in isolation
run a security scan on the login flow
Execute the plan for the login flow
start with the login flow
try the login flow with the new token format
run the app and open the login flow
Check the login flow and the checkout flow for dead links
validate the checkout flow diagram
test driven: write the checkout flow first
begin the login flow implementation
exercise the login flow parser with fuzzing
Please update the checkout flow so that it validates the zip code
test out a new colour scheme on the login page
Can you test that the login flow redirects unauthenticated users? Write it as a vitest
Run prettier on the login flow files
please execute the login flow cleanup we discussed
Do you know how the checkout flow handles refunds?
do we test the login flow anywhere?
verify the login flow against the RFC
Start implementing the login flow
Let's improve the checkout flow
let's test if redis is faster
make sure you test the login flow before committing
The QA team wants to test the login flow in the browser tomorrow
my boss asked me to test the login flow
I'll test the login flow myself
What would it take to test the login flow end to end?
add data-testid attributes so we can test the checkout flow with playwright
Generate a UAT checklist for the login flow
Perform a UAT readiness assessment document
start a UAT branch
run the uat deployment
Run the playwright codegen for the login flow
test the email template in the checkout flow
check out the login flow branch
check the checkout flow types
try to understand the login flow
See if you can simplify the checkout flow
step through the login flow in the debugger
walk through the checkout flow with me and explain each function
go to the login page in the browser and change the title
click the login button in the browser
fill the login form in the browser and tell me the error
use the browser to test the regex on regex101
conduct a retrospective on the checkout flow
play with the checkout flow colours
begin UAT planning for the checkout flow
Review the UAT results of the login flow and fix what failed
Test-drive the implementation of the login flow
exercise caution with the login flow
""".strip().splitlines()

UAT = """
Please test the login flow scenario
test the login flow
Test the login flow
Please test the checkout flow in the browser
run the UAT for the login flow
run the login-flow scenario
run the login flow scenario
Run UAT login-flow
execute the checkout scenario
execute the UAT scenario login-flow
perform user acceptance testing of the login flow
do the UAT of the checkout flow
start the UAT for checkout
uat the login flow please
can you test the login flow?
could you please run the login-flow UAT?
can you run the acceptance test for the login flow?
run the acceptance tests of the checkout flow
let's test the checkout flow
let's run the UAT for the login flow
I want you to test the login flow like a real user
I'd like you to walk through the checkout flow in the browser
walk through the login flow and take screenshots
click through the checkout flow
go through the login flow in the browser
now test the checkout flow end to end
verify the login flow in the browser
verify that the checkout flow works with playwright
validate the login flow with playwright
smoke-test the login flow in chrome
re-run the login-flow scenario
rerun the checkout scenario please
repeat the login flow UAT
Fix the header, then test the login flow in the browser
The form is done. Now run the login-flow scenario.
Great, thanks. Please test the login flow again
ok now execute the login flow scenario with screenshots
check the login flow in the browser
try the checkout flow in the browser
test login and checkout flow in the browser
we need to run the UAT of the checkout flow
go ahead and run the login flow
Hey, run the login flow UAT again please
Please verify the checkout flow works in the browser
I'd like you to test the login flow
Now please execute login-flow
Can you walk through the login flow as a user?
test the checkout flow with the browser and take a screenshot of every step
please do a UAT run of login-flow
kick off the checkout-flow UAT
time to test the login flow
Test login-flow.
start the login-flow scenario
Please UAT checkout
run checkout-flow
conduct user acceptance testing for the checkout flow
please run the login flow scenario once more
Would you test the checkout flow in chromium?
hey claude, test the login flow and report back
run a UAT of the login flow
do a full UAT of checkout-flow
perform the login-flow scenario step by step
Execute UAT for checkout-flow with screenshots
retest the login flow
Re-test the checkout flow please
Let's do the UAT for login flow now
please carry out the acceptance test of the login flow
I need you to run the checkout-flow scenario
run through the login flow in the browser
Play through the checkout flow as a real user
please validate the checkout flow end to end in the browser
The button is fixed now. Test the login flow again.
First start the server, then test the login flow with playwright.
verify the login flow
smoke test the checkout flow
launch the login-flow UAT scenario
""".strip().splitlines()
