"""Words written with capitals in English, for `botchat.seeds.casing`.

A compact general list of our own: common given names and surnames, places, peoples, languages,
calendar, titles, brands and initialisms. Words that are also everyday words (``mark``, ``may``,
``green``) are kept apart, because only their surroundings tell which is meant.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the blank-separated words of ``text``."""
    return frozenset(text.split())


GIVEN_NAMES = words(
    """
    aaron abby abigail adam adrian agnes aidan alan albert alex alexander alexandra alexis alfred
    alice alicia alison allan allen allison alvin amanda amelia amy andrea andrew andy angela
    angelina anita ann anna anne annie anthony antonio arnold arthur ashley audrey austin barbara
    barney barry beatrice becky belinda ben benjamin bernard bert beth betsy betty beverly bob bobby
    bonnie brad bradley brandon brenda brent brian bridget bruce bruno bryan caitlin calvin cameron
    carl carla carlos carmen carol carola carolina caroline carolyn catherine cathy cecilia celia
    charles charlie charlotte chelsea cheryl chloe chris christian christina christine christopher
    cindy claire clara clare clark claudia colin connie connor craig crystal curtis cynthia dan
    daniel danielle danny daphne darren dave david debbie deborah debra denise dennis derek diana
    diane dirk dolores donald donna dora doris dorothy doug douglas duncan dylan ed eddie edgar
    edith edmund eduardo edward edwin eileen elaine eleanor elena eli elisa elizabeth ella ellen
    ellie elliot elsa elsie emily emma eric erica erik erin ernest ernie esther ethan eugene eva
    evan evelyn felicia felix fernando fiona florence francis franco frankie franklin fred freddie
    freddy frederick gabriel gareth gary gavin gemma geoff geoffrey george georgia gerald gerard
    gilbert gina gloria gordon graham greg gregory greta gustav hannah hans harold harriet harrison
    harry harvey hector heidi helen helena henry herbert hilary howard hugh hugo ian ida ingrid
    irene isaac isabel isabella ivan jack jackie jackson jacob jacqueline jake james jamie jane
    janet janice jason jean jeff jeffrey jennifer jenny jeremy jerry jesse jessica jill jim jimmy
    joan joanna joanne joe joel johanna john johnny jon jonathan jordan jorge jose joseph josephine
    josh joshua joyce juan judith judy julia julian juliana julie juliet julius justin karen karl
    kate katherine kathleen kathy katie kayla keith kelly ken kenneth kenny kevin kim kimberly
    kirsten kitty kristen kurt kyle larry laura lauren laurence lawrence leah lee lena leo leon
    leonard leslie lewis liam linda lisa liz liza lois lorraine louis louisa louise lucas lucia lucy
    luis luke lydia lynn mabel madeleine maggie malcolm mandy manuel marcus margaret margarita maria
    marian marie marilyn mario marion marisa marjorie marsha martha martin marvin mary mathew
    matilda matt matthew maureen maurice maxine megan melanie melinda melissa mercedes meredith
    michael michelle miguel mike mildred millie miranda miriam mitchell moira molly mona monica
    morgan morris muriel murray myra myron nadia nancy naomi natalie natasha nathan neil nellie
    nelson nicholas nicola nicole nigel nina noah nora norman oliver olivia oscar oswald owen pablo
    pamela patricia patrick patty paul paula pauline pedro peggy percy pete peter phil philip
    phillip phoebe phyllis polly rachel ralph ramon randy raymond rebecca reggie ricardo richard
    ricky rita robert roberta robinson rodney roger roland ron ronald ronnie rosa rosemary rosie
    ross roy rudy rupert russell ruth ryan sabrina sally sam samantha sammy samuel sandra sara sarah
    saul scott sean sebastian selina sergio seth shane shannon sharon sheila shelly shirley sidney
    silvia simon sofia sonia sonya sophia sophie stacy stan stanley stella stephanie stephen steve
    steven stuart susan susanna susie suzanne sybil sylvia tammy tanya tara ted teddy terence teresa
    terry thelma theo theodore theresa thomas tim timothy tina toby todd tom tommy tony tracy trevor
    trudy tyler ursula valerie vanessa vera veronica vicky victor victoria vincent viola virginia
    vivian walter wanda warren wayne wendy wesley wilfred william willie wilma winnie winston xavier
    yolanda yvette yvonne zachary zoe
    """
)

SURNAMES = words(
    """
    adams anderson armstrong austen baldwin barrett bennett brookings browning campbell carlson
    carson carter chavez chopin churchill clinton cohen collins cooper crawford cunningham davidson
    davies davis dawson diaz dickens dickson dixon dobson donaldson douglas edison edwards einstein
    eliot elliott ellis evans ferguson fernandez fitzgerald fleming freud galileo gandhi garcia
    gibson gomez gonzalez goodman hamilton hansen harper harris hawkins hemingway henderson
    hernandez hitchcock hoffman holmes hudson hughes jefferson jenkins jennings jensen johnson
    johnston jones kennedy klein kowalski larson lincoln lopez macdonald marshall martinez mcdonald
    mendez meyer michelangelo mozart mueller murphy napoleon newton nguyen nicholson nixon obama
    olson parker parkinson patterson pearson perez perkins peterson phillips picasso ramirez
    reynolds richards richardson roberts robertson rodriguez romero roosevelt rosenberg sanchez
    sanders schmidt schneider schubert schultz shakespeare simmons simpson smith spencer spielberg
    stephens stephenson stevens stevenson stewart sullivan thompson thomson torres turner vargas
    wagner wallace watson watts wilkins wilkinson williams williamson wilson wong yang zhang
    """
)

PLACES = words(
    """
    aberdeen adelaide afghanistan africa alabama alaska albany algeria alps amazon america amsterdam
    andes antarctic antarctica arctic argentina arizona arkansas asia athens atlanta atlantic
    auckland australia austria bahamas baltimore bangkok bangladesh barcelona beijing belfast
    belgium berkeley berlin birmingham bolivia bombay boston brazil brighton brisbane bristol
    britain broadway brooklyn brunswick brussels budapest bulgaria cairo calcutta calgary california
    cambodia cambridge canada canberra cardiff caribbean chicago chile china chinatown cleveland
    colombia colorado columbia connecticut copenhagen croatia cuba dakota dallas delaware delhi
    denmark denver detroit doncaster dubai dublin edinburgh egypt england ethiopia europe fiji
    finland florence florida france frankfurt geneva germany ghana glasgow greece greenland
    guangdong guangzhou hainan haiti hamburg hangzhou harbin harlem harvard havana hawaii heathrow
    helsinki himalayas hollywood honolulu houston hungary iceland idaho illinois india indiana
    indonesia iowa iran iraq ireland israel istanbul italy jakarta jamaica japan jerusalem kansas
    kentucky kenya korea kuwait kyoto laos latvia leeds leicester libya lisbon liverpool london
    louisiana luxembourg macau madrid maine malaysia malta manchester manhattan maryland
    massachusetts mediterranean melbourne memphis mexico miami michigan milan minneapolis minnesota
    mississippi missouri montana monterrey montreal morocco moscow mumbai munich nairobi nanjing
    naples nebraska nepal netherlands nevada newcastle nigeria norway nottingham oakland ohio
    oklahoma ontario oregon orlando osaka oslo ottawa oxford pacific pakistan panama paris
    pennsylvania perth peru philadelphia philippines pittsburgh plymouth poland portland portugal
    prague princeton qingdao quebec romania rome russia sacramento salzburg scandinavia scotland
    seattle seoul shanghai sheffield shenzhen siberia singapore southampton spain stanford stockholm
    sudan suzhou sweden switzerland sydney syria taipei taiwan tanzania tasmania tennessee texas
    thailand thames tianjin tibet tokyo toronto tunisia turin uganda ukraine utah vancouver
    venezuela venice vermont vienna vietnam wales warsaw washington wellington westminster wimbledon
    wisconsin wuhan wyoming xi'an yale yangtze yellowstone yorkshire yunnan zimbabwe zurich
    """
)

PEOPLES = words(
    """
    african africans american americans arab arabic arabs argentinian asian asians australian
    australians austrian belgian brazilian brazilians british buddhist californian canadian
    canadians cantonese catholic chinese christian christians cuban danish dutch egyptian english
    englishman englishmen englishwoman european europeans filipino finnish french frenchman
    frenchmen german germans greek greeks hindu hungarian indian indians indonesian irish irishman
    islamic israeli italian italians jamaican japanese jew jewish jews korean koreans latin londoner
    malaysian mandarin mexican mexicans mongolian moroccan muslim muslims norwegian parisian persian
    peruvian portuguese roman romans russian russians scottish singaporean spaniard spanish swedish
    swiss thai tibetan ukrainian victorian vietnamese welsh yorker yorkers
    """
)

CALENDAR = words(
    """
    april august christmas december easter february friday fridays halloween hanukkah january july
    june monday mondays november october ramadan saturday saturdays september sunday sundays
    thanksgiving thursday thursdays tuesday tuesdays valentine valentine's wednesday wednesdays xmas
    """
)

MISCELLANEOUS = words(
    """
    bible bluetooth buddha citibank coca cola disney disneyland dr facebook gmail god google hamlet
    hilton honda hyundai instagram kodak koran lego linkedin marriott mcdonald's microsoft mister mr
    mrs ms netflix newsweek nike nintendo nobel olympic olympics oscars panasonic pepsi photoshop
    playstation renaissance samsung santa skype sony starbucks toyota twitter uber volkswagen volvo
    walmart whatsapp wikipedia x-box xbox yahoo
    """
)

SPELLINGS = {
    **{
        word: word.upper()
        for word in words("""
            aids atm bbc bmw bbq cbs cctv cd cds cia cnn cpu cv dj dna dvd dvds esl eu fbi fm
            gdp gmat gps gre hiv hsk ibm id ids imf ioc iq ielts jfk lcd mba mbas mit mp mp3 mtv
            nasa nato nba nbc nfl nhs nyc nyu ok pc pcs pdf phd rsvp sms suv toefl tv tvs uae
            ucla ufo ufos uk un unesco usa usb vip vips vcr wto wwf
        """)
    },
    "cds": "CDs",
    "dvds": "DVDs",
    "iphone": "iPhone",
    "iphones": "iPhones",
    "ipad": "iPad",
    "ipod": "iPod",
    "ids": "IDs",
    "mbas": "MBAs",
    "mcdonald": "McDonald",
    "mcdonald's": "McDonald's",
    "macdonald": "MacDonald",
    "o'brien": "O'Brien",
    "o'connor": "O'Connor",
    "o'neill": "O'Neill",
    "pcs": "PCs",
    "phd": "PhD",
    "t-shirt": "T-shirt",
    "t-shirts": "T-shirts",
    "tvs": "TVs",
    "ufos": "UFOs",
    "vips": "VIPs",
    "wifi": "WiFi",
    "wi-fi": "Wi-Fi",
    "youtube": "YouTube",
}
"""Words with a spelling of their own, by their lower-case form."""

PHRASES = frozenset(
    phrase.replace("_", " ")
    for phrase in words(
        """
        bank_of_america bank_of_china big_apple big_ben boxing_day buckingham_palace buenos_aires
        cape_town central_america central_park children's_day christmas_eve costa_rica
        czech_republic daytona_beach east_coast eiffel_tower empire_state_building father's_day
        fifth_avenue golden_gate_bridge grand_canyon great_britain great_wall high_street hong_kong
        hyde_park independence_day labor_day las_vegas latin_america los_angeles main_street
        manchester_city manchester_united memorial_day middle_east mother's_day mount_everest
        national_day new_delhi new_england new_jersey new_mexico new_orleans new_year new_year's
        new_year's_day new_year's_eve new_york new_york_city new_zealand north_america
        north_carolina north_korea north_pole nova_scotia olympic_games puerto_rico red_cross
        red_sea rio_de_janeiro salt_lake_city san_diego san_francisco san_jose santa_claus
        saudi_arabia social_security south_africa south_america south_carolina south_korea
        south_pole spring_festival sri_lanka st._louis star_wars thanksgiving_day the_states
        times_square united_airlines united_kingdom united_nations united_states valentine's_day
        virgin_islands wall_street west_coast west_virginia white_house winter_olympics world_cup
        world_war
        """
    )
)
"""Names of several words, some of which are everyday words on their own."""

AMBIGUOUS_GIVEN_NAMES = words(
    """
    amber angel bill daisy dean dick drew eve frank gail gene ginger glen grace grant guy
    heather holly iris ivy jasmine jay jewel lance lily mark max may nick norm olive pat pearl
    penny ray rich rick rob robin rod rose ruby rusty sherry sue tiffany violet wade will
    """
)
"""Given names that are everyday words as well."""

AMBIGUOUS_SURNAMES = words(
    """
    barber bell bird bishop black brown bush butler carpenter chase cliff cook dean field fisher
    foster fox graves gray green grey hall hill hunter king lane lion marsh miller mills moon
    page park pierce potter price reed rice rivers rose snow stone taylor trump turner walker
    ward waters west white wood woods young
    """
)
"""Surnames that are everyday words as well."""

STREETS = words("avenue college lane road street university")
"""What is called after people and colours alike: ``Green Street``."""

INSTITUTIONS = words(
    """
    airlines airport bay beach bridge canal castle cathedral center centre cinema club coast hall
    hospital hotel island library museum palace park prize school square stadium station theater
    theatre tower
    """
)
"""What takes a capital after a name: ``Heathrow Airport``."""
