"""Two hundred texts that are no text at all to a careless page."""

from itertools import cycle, islice, product

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    "<svg><script href=data:text/javascript,window.pwned=1 /></svg>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<body onload=window.pwned=1>",
    "<a href='javascript:window.pwned=1'>click</a>",
    "javascript:window.pwned=1//",
    "data:text/html,<script>window.pwned=1</script>",
    "<math><mi//xlink:href='data:x,<script>window.pwned=1</script>'>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//example.invalid/x.css>",
    "<meta http-equiv=refresh content='0;url=//example.invalid'>",
    "<base href=//example.invalid/>",
    "<form action=//example.invalid><button>go",
    "<object data=//example.invalid>",
    "<template><script>window.pwned=1</script></template>",
    "<!--",
    "]]>",
    "&lt;b&gt;not bold&lt;/b&gt;",
    "&#60;script&#62;window.pwned=1&#60;/script&#62;",
    "{{ 7 * 7 }}",
    "{% include '/etc/passwd' %}",
    "{{ config.__class__ }}",
    "${window.pwned=1}",
    "<%= 7 * 7 %>",
    "' OR 1=1; --",
    "../../../../etc/passwd",
    "%3Cscript%3Ewindow.pwned=1%3C/script%3E",
    "\x1b[31mred\x1b[0m\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H\x9b2J",
    "\u202egnp.exe\u202c",
    "\u2066right\u2069\u200b\u200d\ufeff",
    "a\x00b\x08c\x7f",
    "line\nbreak\r\nand\u2028another\u2029one",
    "\ud800half a pair",
    "🏴" + "\U000e0067\U000e0062" + "\u0301" * 60,
    "𝕳𝖔𝖑𝖉 ﷽ " + "Z̷̢̛͓̰̫̀͝a̵l̸g̶o̷",
    "A" * 3000,
)  # fmt: skip
BREAKERS = ("{}", '"{}', "'{}", '"><x y="{}', "`{}", "--> {}", "</textarea></title></noscript>{}")
COUNT = 200


def strings() -> list[str]:
    """Every payload plain, then behind what would end an attribute, a comment, a script or a title."""
    pairs = product(BREAKERS, PAYLOADS)
    made = [breaker.format(text) if breaker != "{}" else text for breaker, text in islice(cycle(pairs), COUNT)]
    assert len(set(made)) == COUNT
    return made
