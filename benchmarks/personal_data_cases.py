"""200 sentences that hold one piece of personal data each, and 200 that hold something that looks like it.

Nobody's: numbers are invented (their check digits computed), addresses do not exist, keys open nothing. Keys are
joined from parts, so that no scanner of this repository takes them for real.
"""

from __future__ import annotations

__all__ = ["HARMLESS", "PLANTED"]

_EMAIL = """
Please send the invoice to {dana.reyes@example.com} by Friday.
My address is {d.reyes+billing@mail.example.co.uk}, thanks
Reach me: {DANA_REYES@EXAMPLE.ORG}
cc {hyejin.park@example.co.kr} and close the ticket
제 메일은 {minsu.kim@example.kr}입니다.
답장은 {kim_minsu77@naver.example} 로 부탁드립니다
이메일({seo-yeon@example.com})로 보내 주세요
"Lee, J." <{j.lee@sub.dept.example.edu}> wrote:
mailto:{office@example.net}?subject=hi
login={paul99@example.io};role=user
the user {o'brien@example.ie} cannot sign in
{first.middle.last@example-site.com} is bouncing
Forward it to {x@example.com}.
Contact: {info.private@한글.example.com} 감사합니다
{dana [at] example.com} is how I write it in public
write to {dana (at) example (dot) com} please
보낸 사람: {박혜진.park@example.com}
account {u1234567@example.ac.kr} is locked
{ann@example.com},bob was copied
Why does {tom_smith@example.travel} get two mails?
{a.b.c@d.example.com} is the admin; who else?
수신자 {jiwon_lee@example.com}에게 전달해 주세요
{support+kr@example.com}인데요, 인증 메일이 안 와요
email={q@example.co.jp}&ok=1
I signed up as {night.owl.1984@example.com}!
Ｅメール {hana＠example.com}
""".strip().splitlines()

_PHONE = """
call me on {(415) 555-2671} after six
My cell is {415-555-2671}.
ring {415.555.2671} and ask for Dana
office: {+1 650 253 0000} ext 12
{+1-212-555-0187} was the number on the invoice
UK mobile {+44 7700 900123} please
Landline {020 7946 0958}, mornings only
text {07911 123456} when you arrive
Germany: {+49 30 901820} works
fax {+33 1 42 68 53 00}
{+81 3-1234-5678} is the Tokyo desk
{+86 138 1234 5678} for the supplier
{+91 98765 43210} on chat
call {4155552671} now
my phone number is {2125550187}
전화는 {010-1234-5678}입니다
{01012345678}로 문자 주세요
연락처 {010 9876 5432}
{010.2345.6789} 김민수
회신: {+82 10-3456-7890}
{+821045678901} 으로 전화 바랍니다
{82-10-5678-9012}
집 전화 {02-312-3456}
사무실은 {031-123-4567} 이에요
부산 {051-700-1234}로 걸어 주세요
{070-8123-4567} 인터넷 전화
{(02)3456-7890} 내선 3번
{011-234-5678} 옛날 번호
안심번호 {0505-123-4567} 입니다
０１０ 번호는 {０１０-２２２２-３３３３}
고객 {(010)4444-5555} 재통화 요청
핸드폰:{010-777-8888}
{+82 (0)10 6666 7777} is her Korean number
tel:{+1.415.555.2671}
WhatsApp {+55 11 91234-5678}
my mom's number is {010-5151-6262}
{010-8282-9393}/서울 거주
직통 {042-860-1234} 담당자
reach her at {(312) 555-0142}.
{032-555-7788}로 회신 요망
dial {+34 612 34 56 78} from abroad
""".strip().splitlines()

_CARD = """
card {4000123456789017} exp 09/28
my Visa {4532 1234 5678 9014} was declined
Mastercard {5123-4567-8901-2346}
charged to {5454123412341232} twice
Amex {3782 822463 10005}
amex {378282246310005}.
{341234567890127} is the corporate one
Discover {6011 1234 5678 9019}
JCB {3528-1234-5678-9012} 결제
{2223123456789012} new range
UnionPay {6212345678901232}
Diners {3612 345678 9013}
카드번호 {4532-1234-5678-9014} 로 결제했어요
카드 {9410-1234-5678-9010} 분실 신고
{4000 1234 5678 9017} 승인 취소 부탁드립니다
신용카드({5123456789012346}) 등록 오류
PAN={4532123456789014}&cvv=000
"number":"{5454-1234-1234-1232}"
결제 카드 {4000-1234-5678-9017}, 유효기간 11/27
이 카드 {6011-1234-5678-9019} 해지
card no. {4000123456789017}, cvc 123
４０００ 카드 {４０００１２３４５６７８９０１７}
""".strip().splitlines()

_ID = """
주민등록번호 {850312-1001230} 확인 부탁
주민번호는 {920730-2045117}입니다
{010415-3009123} 자녀 등록
주민등록번호: {0411234567802}
{770909-1123456} 본인 인증이 안 돼요
보험 가입자 {991231-2876549}
{650505-1345675}(부), 동의함
저는 {070101-3123126} 입니다
외국인등록번호 {880214-5123453}
alien registration {950606-6234128}
2020년생 {210305-4123456} 출생 신고
주민등록번호 {920730 - 2045117}
마스킹된 번호 {850312-1******}
운전면허 {11-20-123456-78} 갱신
면허번호 {13-08-654321-02}
여권번호 {M12345678} 분실
여권 {M123A4567} 재발급
passport {512345678} expires in May
My SSN is {536-90-4399}.
ssn {219 45 6789}, please update
social security number {536904399}
(SSN: {401-22-3344})
NI number {AB 12 34 56 C}
{JG103759A} is my national insurance number
DNI {12345678Z}
mi NIE es {X1234567L}
NIR {1 85 05 78 006 084 91}
codice fiscale {RSSMRA85T10A562S}
CPF {390.533.447-05}
cliente {529.982.247-25}
Aadhaar {2345 6789 0124}
aadhaar no {5678 1234 9018}
SIN {130-692-544}
social insurance {130 692 544}
身份证 {11010519491231002X}
""".strip().splitlines()

_ADDRESS = """
Ship it to {1600 Maple Grove Avenue, Springfield, IL 62704}.
I live at {42 Elm Street}
deliver to {7 N. Lincoln Blvd., Apt 4B}
{221B Baker Street, London NW1 6XE}
old home: {15 Station Road, Reading RG1 1LG}
{350 Fifth Avenue, New York, NY 10118}
{1208 W 14th St, Austin, TX 78703} is the new one
send a technician to {88 Old Mill Lane}
moved to {9 Rosewood Ct, Unit 12}
{P.O. Box 4512, Denver, CO 80201}
address: {12 Harbour View Terrace, Sydney NSW 2000}
{27 Willow Ln., Madison, WI 53703-1234} is where I work
my flat is {Flat 3, 27 Queens Gardens}
{4410 University Dr}, ring twice
{77 Massachusetts Ave, Cambridge, MA 02139}
pick me up from {5 Kings Close}
{301 east pine street, orlando, fl 32801}
{1 Oak Hill Circle} and then {1 Oak Hill Circle}
parcel to {63 Rue de la Paix Road}
from {2500 Sunset Pkwy Suite 300} to the airport
invoice address {19 Lower Bridge Row}
{서울특별시 강남구 테헤란로 152}로 배송
주소는 {서울시 마포구 월드컵북로 400, 12층}입니다
{부산광역시 해운대구 센텀중앙로 97 101동 1203호}
{경기도 성남시 분당구 판교역로 235} 로 보내 주세요
배송지: {대전 유성구 대학로 99}
{인천 연수구 송도과학로 85번길 32}
{서울 종로구 세종대로 209 (세종로)}
집은 {강서구 공항대로 236} 이에요
{전북 전주시 완산구 기린대로 220-5}
{제주특별자치도 제주시 첨단로 242}
{서울 관악구 신림동 1467-10}
{경남 창원시 성산구 중앙동 88번지}
{강원도 춘천시 남산면 방곡리 12-3}
{래미안아파트 102동 504호}에 삽니다
{한빛빌라 3동 201호} 앞에 두세요
{은행나무로 23길 5, 302호} 로 와 주세요
{송파구 올림픽로35길 104} 도착
{수원시 팔달구 효원로 241}
{광주 서구 내방로 111} 민원
{대구광역시 수성구 달구벌대로 2450} 택배
세종시 {세종특별자치시 도움6로 11}
이사 온 곳: {경기 고양시 일산동구 호수로 595}
{충청북도 청주시 상당구 상당로 82} 방문
{울산 남구 중앙로 201} 견적
{용인시 기흥구 보정동 1020-3번지} 견적
""".strip().splitlines()

_KEY = """
key {sk-`proj-Ab12Cd34Ef56Gh78Ij90Kl12} leaked
export TOKEN={ghp_`aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5}
{AKIA`ABCD2EFG3HIJ4KLM} in the config
{AIza`SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q}
slack {xoxb-`123456789012-abcdefGHIJKL}
{hf_`AbCdEfGhIjKlMnOpQrStUvWx12} does not work
{glpat-`1a2B3c4D5e6F7g8H9i0J} for the pipeline
Authorization: Bearer {abc123DEF456`ghi789JKL012}
{eyJhbGciOiJIUzI1NiJ9.`eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123_-xyz}
password: {hunter2`!horse}
my password is {Tr0ub4dor`&3}
pwd postgres://app:{s3cr3t`Pass}@db.example.com/x
api_key="{9f8e7d6c5b4a`39281706f5e4d3c2}"
비밀번호는 {qwer`1234!!}
비번 {abcd`9876} 안 먹혀요
API 키: {k3y-9d8f`7g6h5j4k}
client_secret={Zx9`Yw8Vu7Ts6}
{SG.`abcdEFGH1234ijklMNOP.qrstUVWX5678yzabCDEF9012}
{npm_`a1B2c3D4e5F6g7H8i9J0k1L2m3}
{nvapi-`A1b2C3d4E5f6G7h8I9j0} expired
pem {-----BEGIN `PRIVATE KEY-----abcDEF123-----END PRIVATE KEY-----}
refresh_token: {1//0gAb`Cd3fGh1jKl}
토큰={tok9`8f7e6d5c}
secret: {b64`Zm9vYmFyMTIz}==
session token {st4te`F00dBeef99}
passcode: {p4ss`c0de99}
인증키 {KEY2024`abCD99}
access key {AbCd1234`EfGh5678}
x-api-key: {1234abcd`5678efgh}
{pplx-`1a2b3c4d5e6f7a8b9c0d1e2f}
""".strip().splitlines()

_HARMLESS = """
Use @property on the getter
ping @dana in the channel
git@2.44.0 is installed
npm i react@18.2.0
the logo@2x.png file is blurred
user@localhost keeps showing in my prompt
meet @ 5.30 pm
a@b is not an address
price @ $3.50 each
import "lodash@4.17.21"
P@ssw0rd rules explained to a class
what does the @ sign mean?
5 items @ 10 dollars
twitter handle @hyejin_p
scope @types/node
이메일 주소를 어떻게 바꾸나요?
메일이 안 와요 @관리자
골뱅이(@) 기호 입력법
order 4155552671 has not shipped
tracking 9400 1000 0000 0000 0000 00
invoice 2024-0115-0042
the meeting is 2024-01-15 12:30
from 2019-2024 revenue grew 12.5 %
IP 192.168.100.200 is blocked
version 10.15.7 build 19H2026
call stack depth 1024
dial tone at 440 Hz
pi is 3.14159265358979
population 8,336,817 in 2022
compute 123456789 * 987654321
score 3-2, 6-4, 7-5
ISBN 978-3-16-148410-0
ISBN 0-306-40615-2
the year 1988-1999 archive
range 100-200-300
page 555-1234 of the index
part no. 415-55-A2671
SKU 0101-2345-AB
model X010-1234
width 1200 x 800 x 600 mm
timestamp 1718036400
unix 1700000000123
ticket 00012345678
coordinates 37.5665, 126.9780
lat 37.566535 lon 126.977969
temperature -12.5 to 40.0
1 000 000 000 won
₩12,345,678 환불
총액 1,234,567,890원
주문번호 20240115-1234567
주문 번호 2024011512345678
운송장 6012 3456 7890
송장번호 123456789012
사업자등록번호 120-81-47521
법인등록번호 110111-1234567
우편번호 06236
오후 3시 30분에 전화 주세요
전화 상담은 09:00-18:00
전화번호를 바꾸고 싶어요
제 휴대폰이 켜지지 않아요
2024.01.15 결제 건
2023-12-31까지 유효
회원번호 10023456
3월 14일 15시 92분은 없어요
버전 3.10.1234
기온은 10~12도, 습도 40-60 %
010은 이진수로 2입니다
1234-5678 페이지
0.010-0.020 사이의 값
100-010 = 90
수량 1,000 / 2,000 / 3,000
문제 12-34번
제 12345호 결정
4000 1234 5678 9018 is a bad card number in the docs
test 1234567890123456
serial 4532123456789015
IMEI 490154203237518
random 7777777777777777
0000 0000 0000 0000
9999999999999999 overflow
5123456789012345 fails the check
UUID 550e8400-e29b-41d4-a716-446655440000
commit 9fceb02d0ae598e95dc970b74767f19372d6
sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4
0x4000123456789017 as hex
EAN 4006381333931
GTIN 00012345600012
barcode 8801234567893
4,532,123,456,789,014 atoms
3.782822463100050 rounded
batch 2024-5123-4567
credit card form does not load
카드 번호 16자리를 입력하세요
카드가 두 번 결제됐어요
일련번호 1111-2222-3333-4445
16자리 쿠폰 9999-8888-7777-6666
850312-1001231 의 검증 숫자가 틀림
991331-1234567 is no date
주민등록번호 뒷자리는 왜 7자리인가요?
123456-7890123
900230-1234567
문서번호 202401-15
SSN stands for social security number
000-12-3456 is never given out
666-12-3456 neither
987-65-4320 neither
12-34-5678
what is a passport number?
passport photos are 35x45 mm
여권 발급에 며칠 걸려요?
여권 사진 규격 3.5cm
DNI 12345678A has the wrong letter
X1234567A is not valid
CPF 390.533.447-06
111.222.333-44
AB 123 456
QQ 12 34 56 C as the form's example
section AB 12 34
SIN 123-456-789
sin(130) cos(692)
2345 6789 0125
1234 5678 9012 units
M1234567
flight KE123 seat 12A
gate A12, row 34
driver version 11-20-1234
law 13-08-65
운전면허 시험 일정
면허 11-20 갱신 기간
110105194912310021
a 5 minute drive
the 10 way handshake
take 2 lanes
I have 3 courts to book
It is 100 Percent Street style
drive 25 miles per hour
Route 66 road trip
9 Lives Drive is a song title?
Wall Street closed higher
what happened on Abbey Road in 1969?
the 1984 Place theory was wrong
top 10 places in Seoul
5 star hotels
Baker Street station is closed
Fifth Avenue is long
ten Downing Street press briefing
Drive 2 is full
Level 4 Circle of hell
5 Ways to save
3 Row seats
box 12 of the form
P.O. 4500012345
PO number 88123
Ave Maria in 3 parts
Dr. Lee has 2 patients
2 St Bernard dogs
the court ruled 5 to 4
lane 3 is blocked
close 4 tickets
서울시 강남구 날씨 알려줘
강남구 맛집 추천
부산에서 대구로 3시간 걸려요
이 길로 10분 가세요
앞으로 3개월
무료로 100명 초대
별도로 2개 더
세계로 뻗는 5대 기업
종로 3가역 출구
2호선 강남역
101동 주민 대표는 누구인가요
3동 물품 창고
하나로 2회 결제
서로 5번 연락했어요
바로 1234 입력
제주도 3박 4일
경기도 인구 1300만
경기 3회 초 1사
서울 1호점
광주 5·18
인천 공항 2터미널
대로 1차선 공사
울산시 2024년 예산
동 100개, 은 200개
명동 3대 맛집
활동 12가지
운동 30분
자동 3단계
관리 5팀
거리 10km
비율로 30% 할인
로그 5개
password: required
password must be 12 characters
비밀번호는 8자리 이상이어야 합니다
비밀번호를 잊어버렸어요
비밀번호: 영문과 숫자
token count 4096
max_tokens: 256
the token is expired
api key not found
API 키는 어디서 발급받나요?
secret: santa
bearer of bad news
sk-learn pipeline
sk-estimator-config-options
hf_hub_download fails
the passcode screen
access key missing
key-value-pairs
gsk-pharmaceutical-company
eyJ is how JWTs begin
""".strip().splitlines()


def _planted() -> list[tuple[str, str, str]]:
    """(kind, the value that must go, the whole sentence)."""
    out = []
    groups = {
        "email": _EMAIL, "phone": _PHONE, "card": _CARD, "national_id": _ID, "address": _ADDRESS, "key": _KEY,
    }  # fmt: skip
    for kind, lines in groups.items():
        for line in lines:
            text = line.replace("`", "")
            before, rest = text.split("{", 1)
            value, after = rest.split("}", 1)
            out.append((kind, value, before + value + after.replace("{" + value + "}", value)))
    return out


PLANTED: list[tuple[str, str, str]] = _planted()
HARMLESS: list[str] = list(_HARMLESS)
